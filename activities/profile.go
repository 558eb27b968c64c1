package activities

import (
	"cmp"
	"context"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/values/redaction"
)

// requestWithProfile is request for an update that a worker hosts: the request is stored with what the update has of
// the profile that its configuration names, which it returns; nil if it names none. The profile is read after the
// caller was found to be permitted. Where it is refused, the request is stored without it: the history says what was
// asked for.
func (a *Activities) requestWithProfile(
	ctx context.Context, in deployments.ClaimInput,
) (*deployments.PinnedProfile, error) {
	in.Request.Profile = nil
	name := in.Request.Config[stackkeys.Profile].Value
	if name == "" {
		return nil, a.request(ctx, in)
	}
	err := cmp.Or(stackkeys.Check(stackkeys.Profile, name), a.permit(ctx, in))
	if err == nil {
		in.Request.Profile, err = a.pin(ctx, in, name)
	}
	if err != nil && deployments.CodeOf(err) == deployments.CodeUnavailable {
		return nil, err // it is asked again
	}
	return in.Request.Profile, cmp.Or(a.putRequest(ctx, in), err)
}

// pin returns what an update has of its profile. That is stored with its request when it begins: the newest version
// counts, and counts until its end, on whatever worker it goes on.
func (a *Activities) pin(
	ctx context.Context, in deployments.ClaimInput, name string,
) (*deployments.PinnedProfile, error) {
	u, r := in.Update, in.Request
	stored, err := a.Store.Request(ctx, u)
	if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return nil, err
	}
	if p := stored.Profile; err == nil && stored.RequestID == r.RequestID && p != nil && p.Name == name {
		return p, nil
	}
	p, err := a.Store.Access.UseProfile(ctx, r.Authority, u.StackName, name, deployments.AuditEntry{
		Request: r.RequestID, Peer: "queue", Method: "Profiles/Use",
		Subject: fmt.Sprintf("kind=%s dry_run=%t update=%s", r.Kind, r.DryRun, u.Version),
	})
	if err != nil {
		return nil, err
	}
	return p.Pin(), nil
}

// secretTexts returns the texts that must not appear in output: the secrets of the configuration and of the profile,
// and their parts.
func (s *session) secretTexts() []string {
	return append(s.config.SecretTexts(), s.profileTexts()...)
}

func (s *session) profileTexts() (texts []string) {
	for _, value := range s.request.Profile.Secrets() {
		texts = append(texts, redaction.Leaves(value)...)
	}
	return texts
}

// secretsOfProfile returns what finds secrets of the profile in values; nil if there are none. A program marks the
// secrets that it takes from the configuration, but a variable of the environment cannot say that it is one.
func (s *session) secretsOfProfile() func(text string) bool {
	texts := s.profileTexts()
	if len(texts) == 0 {
		return nil
	}
	r := redaction.New(texts)
	return func(text string) bool { return r.Replace(text) != text }
}
