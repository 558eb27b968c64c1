package wire

import (
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// FromStack writes a stack's name.
func FromStack(s deployments.StackName) *api.StackName {
	return &api.StackName{Organization: s.Organization, Project: s.Project, Stack: s.Stack}
}

// ToStack reads a stack's name.
func ToStack(m *api.StackName) deployments.StackName {
	return deployments.StackName{Organization: m.GetOrganization(), Project: m.GetProject(), Stack: m.GetStack()}
}

// FromUpdate writes an update's name.
func FromUpdate(u deployments.UpdateName) *api.UpdateName {
	return &api.UpdateName{Stack: FromStack(u.StackName), Version: u.Version}
}

// ToUpdate reads an update's name.
func ToUpdate(m *api.UpdateName) deployments.UpdateName {
	return deployments.UpdateName{StackName: ToStack(m.GetStack()), Version: m.GetVersion()}
}

// FromSecrets writes a secrets provider.
func FromSecrets(s deployments.SecretsProvider) *api.SecretsProvider {
	return &api.SecretsProvider{Type: s.Type, Salt: s.Salt, Key: s.Key, Url: s.URL, EncryptedKey: s.EncryptedKey}
}

// ToSecrets reads a secrets provider.
func ToSecrets(m *api.SecretsProvider) deployments.SecretsProvider {
	return deployments.SecretsProvider{Type: m.GetType(), Salt: m.GetSalt(), Key: m.GetKey(), URL: m.GetUrl(),
		EncryptedKey: m.GetEncryptedKey()}
}

// fromTime writes a time; the zero time is absent.
func fromTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// toTime reads a time.
func toTime(m *timestamppb.Timestamp) time.Time {
	if m == nil {
		return time.Time{}
	}
	return m.AsTime()
}

// fromCounts writes counts by name.
func fromCounts(counts map[string]int) map[string]int64 {
	if counts == nil {
		return nil
	}
	wide := make(map[string]int64, len(counts))
	for name, n := range counts {
		wide[name] = int64(n)
	}
	return wide
}

// toCounts reads counts by name.
func toCounts(wide map[string]int64) map[string]int {
	if wide == nil {
		return nil
	}
	counts := make(map[string]int, len(wide))
	for name, n := range wide {
		counts[name] = int(n)
	}
	return counts
}

// each translates a list; an empty one stays absent.
func each[A, B any](list []A, translate func(A) B) []B {
	if len(list) == 0 {
		return nil
	}
	translated := make([]B, len(list))
	for i, item := range list {
		translated[i] = translate(item)
	}
	return translated
}
