package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// maxProfiles is a variable for tests.
var maxProfiles = deployments.MaxProfiles

func (s *Store) profiles() owned[deployments.Profile] {
	return owned[deployments.Profile]{
		Store: s, kind: "profile", created: func(p *deployments.Profile) *time.Time { return &p.Created },
		size: deployments.Profile.Size,
		damaged: func(organization, name, why string) deployments.Profile {
			return deployments.Profile{Organization: organization, Name: name, Damaged: why}
		},
	}
}

// ChangeProfile changes a profile by compare-and-swap, or makes one, and returns its new version without secrets. One
// that cannot be read is not changed.
func (s *Store) ChangeProfile(ctx context.Context, c deployments.ProfileChange) (deployments.Profile, error) {
	if err := cmp.Or(c.Validate(), s.needsIssuer(c.Clouds)); err != nil {
		return deployments.Profile{}, err
	}
	of := s.profiles()
	for {
		before, tag, err := of.get(ctx, c.Organization, c.Name)
		absent := errors.Is(err, bucket.ErrAbsent)
		if absent {
			if err = of.none(c.Organization, c.Name); c.Makes() {
				err = s.room(ctx, of.folder()+c.Organization+"/", maxProfiles, c.Organization, "profiles", "profile")
			}
		}
		if err != nil {
			return deployments.Profile{}, err
		}
		after, err := before.With(c, s.sealed.Now().UTC())
		if err != nil {
			return deployments.Profile{}, err
		}
		err = s.sealed.PutJSON(ctx, of.key(c.Organization, c.Name), after, bucket.Condition{Tag: tag, Absent: absent})
		if !errors.Is(err, bucket.ErrChanged) {
			return after.Shown(), err
		}
	}
}

// Profile describes a profile without its secrets; CodeNotFound when there is none of this name.
func (s *Store) Profile(ctx context.Context, organization, name string) (deployments.Profile, error) {
	p, err := s.profiles().any(ctx, organization, name)
	return p.Shown(), err
}

// Profiles describes the profiles of an organization without their secrets, sorted by name.
func (s *Store) Profiles(ctx context.Context, organization string) ([]deployments.Profile, error) {
	if err := deployments.ValidateName("organization", organization); err != nil {
		return nil, err
	}
	list, err := s.profiles().list(ctx, organization)
	for i, p := range list {
		list[i] = p.Shown()
	}
	return list, err
}

// RemoveProfile removes a profile.
func (s *Store) RemoveProfile(ctx context.Context, organization, name string) error {
	return s.profiles().remove(ctx, organization, name)
}

// ProfileUse is the use of a profile by an update.
type ProfileUse struct {
	Name  string                 // of the profile, as the configuration of the stack names it
	Entry deployments.AuditEntry // what the update is
	// Logged is the version of which the audit log has the use already; 0: none.
	Logged int
}

// UseProfile returns the profile that the configuration of a stack names, with its secrets, for an update that an
// authority has asked for. The use is in the audit log before it returns, also when it is refused: CodeNotFound when
// there is no such profile, and CodeForbidden when it is not for the stack.
func (s *Store) UseProfile(
	ctx context.Context, a *deployments.Authority, stack deployments.StackName, use ProfileUse,
) (deployments.Profile, error) {
	name, e := use.Name, use.Entry
	p, _, err := s.profiles().get(ctx, stack.Organization, name)
	switch {
	case errors.Is(err, bucket.ErrAbsent):
		err = deployments.Errorf(deployments.CodeNotFound, "the configuration of %s names the profile %.100q, and the "+
			"organization %s has none: ask an admin to set it (`deployctl profile set %.100s`), or remove the key "+
			"(`deployctl config rm deployctl:profile`)", stack, name, stack.Organization, name)
	case err != nil:
		return deployments.Profile{}, err
	case !p.For(stack):
		err = deployments.Errorf(deployments.CodeForbidden, "the profile %s is not for the stack %s: ask an admin of %s to "+
			"name it beside those that may use it (`deployctl profile show %s` lists them, `deployctl profile set %s --stacks` "+
			"sets them all), or remove the key (`deployctl config rm deployctl:profile`)", name, stack, stack.Organization, name,
			name)
	default:
		err = s.needsIssuer(p.Clouds)
	}
	if err == nil && p.Version == use.Logged {
		return p, nil
	}
	e.Time, e.Organization, e.Stack = s.sealed.Now().UTC(), stack.Organization, stack.Project+"/"+stack.Stack
	if a != nil && len(a.Holders) > 0 {
		e.Token, e.Member = a.Holders[0].Token, a.Holders[0].Member
	}
	if err != nil {
		e.Code, e.Error, p = deployments.CodeOf(err), err.Error(), deployments.Profile{}
	}
	e.Subject = strings.TrimSpace(fmt.Sprintf("profile=%s version=%d %s", name, p.Version, e.Subject))
	e.Cut()
	if unwritten := s.putAudit(ctx, stack.Organization, []deployments.AuditEntry{e}); unwritten != nil {
		return deployments.Profile{}, unwritten
	}
	return p, err
}
