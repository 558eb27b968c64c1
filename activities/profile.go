package activities

import (
	"cmp"
	"context"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/statestore/access"
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
// counts, and counts until its end, on whatever worker it goes on. As long as it waits to begin, the profile is looked
// at each time.
func (a *Activities) pin(
	ctx context.Context, in deployments.ClaimInput, name string,
) (*deployments.PinnedProfile, error) {
	u, r := in.Update, in.Request
	stored, err := a.Store.Updates.Request(ctx, u)
	if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return nil, err
	}
	known := stored.Profile
	if err != nil || stored.RequestID != r.RequestID || known != nil && known.Name != name {
		known = nil
	}
	if known != nil {
		if begun, err := a.hasBegun(ctx, in); err != nil || begun {
			return known, err
		}
	}
	used := 0 // the version whose use is in the audit log
	if known != nil {
		used = known.Version
	}
	p, err := a.Store.Access.UseProfile(ctx, r.Authority, u.StackName, access.ProfileUse{Name: name, Logged: used,
		Entry: deployments.AuditEntry{Request: r.RequestID, Peer: "queue", Method: "Profiles/Use",
			Subject: fmt.Sprintf("kind=%s dry_run=%t update=%s", r.Kind, r.DryRun, u.Version)}})
	if err != nil {
		return nil, err
	}
	if known != nil && !changesHead(u, r) {
		return known, nil // the request of a preview is stored once
	}
	return p.Pin(), nil
}

// hasBegun reports whether an earlier attempt or claim has begun the update.
func (a *Activities) hasBegun(ctx context.Context, in deployments.ClaimInput) (bool, error) {
	if in.Number > 1 {
		return true, nil
	}
	_, err := a.Store.Updates.Info(ctx, in.Update)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}
