package access

import (
	"context"
	"errors"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// ErrNotAllowed is in the chain of errors about a requester who has lost the right to do something. Rejections by the
// object store are other errors.
var ErrNotAllowed = errors.New("may not do this any more")

// CurrentAuthority reduces an authority to what its holders may do now; CodeForbidden and ErrNotAllowed when one of
// them may do nothing.
func (s *Store) CurrentAuthority(ctx context.Context, a deployments.Authority) (deployments.Authority, error) {
	return s.AuthorityAt(ctx, a, s.sealed.Now())
}

// AuthorityAt is CurrentAuthority at a later time, as far as it is known now: some tokens will have expired.
func (s *Store) AuthorityAt(ctx context.Context, a deployments.Authority, at time.Time) (deployments.Authority, error) {
	for _, h := range a.Holders {
		if h.IsService() {
			continue
		}
		now, err := s.holderAuthority(ctx, h, at)
		if err != nil {
			return deployments.Authority{}, err
		}
		a = a.And(now)
	}
	return a, nil
}

// holderAuthority returns what a holder may do; the token must be valid at the given time.
func (s *Store) holderAuthority(
	ctx context.Context, h deployments.Holder, at time.Time,
) (deployments.Authority, error) {
	t, _, err := s.getToken(ctx, h.Token)
	switch {
	case errors.Is(err, bucket.ErrAbsent), err == nil && !t.Created.Equal(h.Made):
		return deployments.Authority{}, notAllowed(h, "the token was removed")
	case bucket.Unreadable(err) != nil:
		return deployments.Authority{}, notAllowed(h, "the token cannot be read: "+err.Error())
	case err != nil:
		return deployments.Authority{}, err
	case !t.Expires.IsZero() && !t.Expires.After(at):
		return deployments.Authority{}, notAllowed(h, "the token is good until "+t.Expires.UTC().Format(time.RFC3339))
	}
	a, err := s.authorityOf(ctx, t)
	if err != nil && deployments.CodeOf(err) == deployments.CodeNotFound {
		gone := "the member was removed"
		if t.Origin != nil {
			gone = "what the token was made from was removed"
		}
		err = notAllowed(h, gone)
	}
	return a, err
}

func notAllowed(h deployments.Holder, why string) error {
	who := "the token " + h.Token
	if h.Member != "" {
		who = h.Member + ", with " + who + ","
	}
	return deployments.Errorf(deployments.CodeForbidden, "%s %w: %s", who, ErrNotAllowed, why)
}

// Permit checks, before requested work begins, that its requester may still deploy to the stack. Otherwise it returns
// CodeForbidden and ErrNotAllowed, and adds e with that error to the audit log.
func (s *Store) Permit(
	ctx context.Context, a deployments.Authority, name deployments.StackName, e deployments.AuditEntry,
) error {
	var asker deployments.Holder
	if len(a.Holders) == 0 {
		return nil // requested in an older release
	}
	asker, a.Holders = a.Holders[0], a.Holders[:1]
	now, err := s.CurrentAuthority(ctx, a)
	if err == nil && !now.May(deployments.RoleDeployer, name) {
		err = notAllowed(asker, "it needs the role "+string(deployments.RoleDeployer)+" on "+name.String())
	}
	if !errors.Is(err, ErrNotAllowed) {
		return err
	}
	e.Time, e.Organization, e.Stack = s.sealed.Now().UTC(), name.Organization, name.Project+"/"+name.Stack
	e.Token, e.Member, e.Code, e.Error = asker.Token, asker.Member, deployments.CodeForbidden, err.Error()
	e.Cut()
	if unwritten := s.putAudit(ctx, name.Organization, []deployments.AuditEntry{e}); unwritten != nil {
		return unwritten
	}
	return err
}
