//go:build unix

package attack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/harness"
)

// copied puts a stored object in another's place, and returns what undoes that.
func copied(t *testing.T, from, to string) (restore func()) {
	t.Helper()
	before, err := os.ReadFile(to)
	there := err == nil
	text, err := os.ReadFile(from)
	harness.Must(t, err)
	harness.Must(t, os.MkdirAll(filepath.Dir(to), 0o700))
	harness.Must(t, os.WriteFile(to, text, 0o600))
	return func() {
		if there {
			harness.Must(t, os.WriteFile(to, before, 0o600))
		} else {
			harness.Must(t, os.Remove(to))
		}
	}
}

// takenPlaces puts what is sealed of one stack, token, member and organization in the place of another's: each opens
// with the service's key, and none is believed.
func takenPlaces(t *testing.T, f *field) {
	f.project(t, "placed", "steps: []\n").Update(t, "up", "-m", "message-of-another-stack")
	strong := f.holder(t, "strong", "--role", "admin", "--organization", "*")
	weak := f.holder(t, "weak", "--role", "viewer", "--organization", "rival")
	f.victim.Must(t, "member", "add", "strong-member", "--role", "admin", "--organization", "organization")
	f.victim.Must(t, "member", "add", "weak-member", "--role", "viewer", "--organization", "rival")
	member := f.holder(t, "weak-members", "--member", "weak-member", "--organization", "rival")
	secret := f.stackOf(t, "rival", "secretive") // its name stands in the audit log of its organization
	var restore []func()
	f.offline(t, func(bucket string) {
		at := func(path ...string) string { return filepath.Join(append([]string{bucket}, path...)...) }
		stacks := at("stacks", "organization")
		first := newest(t, filepath.Join(stacks, "precious/dev/history/*")) // the largest name is the oldest version's
		restore = append(restore,
			copied(t, filepath.Join(stacks, "placed/dev/history", filepath.Base(first)), first),
			copied(t, at("tokens", "strong"), at("tokens", "weak")),
			copied(t, at("members", "organization", "strong-member"), at("members", "rival", "weak-member")))
		batch := newest(t, at("audit/rival/*/*"))
		day := filepath.Base(filepath.Dir(batch))
		restore = append(restore, copied(t, batch, at("audit", "initech", day, filepath.Base(batch))))
	})
	f.dial(t)
	said := f.victim.Run(t, "stack", "history", "--limit", "1000").Said()
	if strings.Contains(said, "message-of-another-stack") || !strings.Contains(said, "damaged") {
		t.Errorf("the history of the victim shows another stack's, or does not name what is damaged: %s", said)
	}
	for what, h := range map[string]holder{"a token with a stronger one's object": weak,
		"a member with a stronger one's object": member} {
		calls := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+h.token))
		_, err := f.stacks().GetStack(calls, &api.GetStackRequest{Stack: dev})
		if err == nil {
			t.Errorf("%s sees the victim's stack", what)
		}
	}
	_, err := f.stacks().GetStack(metadata.NewOutgoingContext(t.Context(),
		metadata.Pairs("authorization", "Bearer "+strong.token)), &api.GetStackRequest{Stack: dev})
	answered(t, "the stronger token itself", err, codes.OK)
	if log := f.victim.Run(t, "audit", "--organization", "initech").Said(); strings.Contains(log, secret) ||
		!strings.Contains(log, "damaged") {
		t.Errorf("the audit log of another organization is shown, or what is damaged is not named: %s", log)
	}
	f.offline(t, func(string) {
		for _, r := range restore {
			r()
		}
	})
	f.dial(t)
}

// stackOf makes a stack in an organization, and returns its project's name.
func (f *field) stackOf(t *testing.T, organization, project string) string {
	t.Helper()
	_, err := f.stacks().CreateStack(f.calls, &api.CreateStackRequest{
		Stack: &api.StackName{Organization: organization, Project: project, Stack: "dev"},
	})
	harness.Must(t, err)
	return project
}

// foreignKeys puts keys of another service in the place of this one's: whoever made them could open what is sealed from
// then on.
func foreignKeys(t *testing.T, f *field) {
	other := harness.NewHome(t, harness.Binary())
	other.Start(t)
	found, err := filepath.Glob(filepath.Join(other.State(), "data", "s3", "*", "keys", "ring.json"))
	harness.Must(t, err)
	if len(found) != 1 {
		t.Fatalf("the other service has %v", found)
	}
	ring := filepath.Join(f.objects(t), "keys", "ring.json")
	f.Deployctl(f.Dir).Must(t, "dev", "stop")
	restore := copied(t, found[0], ring)
	end := f.Deployctl(f.Dir).Run(t, "dev", "--background")
	if end.Code == 0 || !strings.Contains(end.Said(), "key") {
		t.Errorf("the service starts with keys of another: %s", end.Said())
	}
	restore()
	f.Start(t)
	f.dial(t)
}
