package statestore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

const memberFolder = "members/"

// storedMember is a member at rest: the teams are named, not described.
type storedMember struct {
	deployments.Member
	Joined []membership `json:"joined,omitempty"`
}

func (s *Store) newMember(name string) storedMember {
	return storedMember{Member: deployments.Member{Name: name, Created: s.now().UTC()}}
}

// Member returns a member; CodeNotFound when there is none of this name.
func (s *Store) Member(ctx context.Context, name string) (deployments.Member, error) {
	m, _, err := s.getMember(ctx, name)
	if errors.Is(err, ErrAbsent) || err == nil && len(m.All()) == 0 {
		return m.Member, noMember(name)
	}
	return m.Member, err
}

func noMember(name string) error {
	return deployments.Errorf(deployments.CodeNotFound, "there is no member %s: `deployctl member ls` lists those "+
		"there are", name)
}

// ListMembers describes the members, sorted by name.
func (s *Store) ListMembers(ctx context.Context) ([]deployments.Member, error) {
	l, err := s.objects.List(ctx, Query{Prefix: memberFolder})
	if err != nil {
		return nil, failed(err, "list the members")
	}
	members := make([]deployments.Member, 0, len(l.Keys))
	for _, key := range l.Keys {
		name := strings.TrimPrefix(key, memberFolder)
		m, _, err := s.getMember(ctx, name)
		switch {
		case unreadable(err) != nil:
			m.Member = deployments.Member{Name: name, Damaged: err.Error() + ", or remove it and add the member again"}
		case err != nil && !errors.Is(err, ErrAbsent):
			return nil, err
		}
		if len(m.All()) > 0 || m.Damaged != "" {
			members = append(members, m.Member)
		}
	}
	return members, nil
}

// GrantMember creates a member, or replaces a member's grant for the grant's organization.
func (s *Store) GrantMember(ctx context.Context, name string, g deployments.Grant) error {
	if err := g.Validate(); err != nil {
		return err
	}
	return s.changeMember(ctx, name, func(m *storedMember, found bool) error {
		if !found {
			*m = s.newMember(name)
		}
		m.Grants = append(otherGrants(m.Grants, g.Organization), g)
		slices.SortFunc(m.Grants, func(a, b deployments.Grant) int {
			return strings.Compare(a.Organization, b.Organization)
		})
		return nil
	})
}

// RemoveMember removes a member's grants and teams in an organization; an empty organization means all. A member
// without grants is gone. CodeNotFound when there is no such member or grant.
func (s *Store) RemoveMember(ctx context.Context, name, organization string) error {
	return s.changeMember(ctx, name, func(m *storedMember, found bool) error {
		if !found {
			return noMember(name)
		}
		rest := otherGrants(m.Grants, organization)
		joined := slices.DeleteFunc(slices.Clone(m.Joined), func(in membership) bool {
			return organization == "" || in.Organization == organization
		})
		if len(rest) == len(m.Grants) && len(joined) == len(m.Joined) {
			return deployments.Errorf(deployments.CodeNotFound, "the member %s may do nothing in the organization %s",
				name, organization)
		}
		m.Grants, m.Joined = rest, joined
		return nil
	})
}

// otherGrants returns the grants for other organizations; none if the organization is empty.
func otherGrants(grants []deployments.Grant, organization string) []deployments.Grant {
	return slices.DeleteFunc(slices.Clone(grants), func(g deployments.Grant) bool {
		return organization == "" || g.Organization == organization
	})
}

// changeMember changes a member by compare-and-swap. A member without grants stays as an object but is not found:
// deleting the object could remove a grant that was given meanwhile.
func (s *Store) changeMember(
	ctx context.Context, name string, change func(m *storedMember, found bool) error,
) error {
	if err := deployments.ValidateName("member", name); err != nil {
		return err
	}
	defer s.callers.forget()
	for {
		m, tag, err := s.getMember(ctx, name)
		if err != nil && !errors.Is(err, ErrAbsent) {
			return err
		}
		if err := change(&m, len(m.All()) > 0); err != nil {
			return err
		}
		err = s.putMember(ctx, m, Condition{Tag: tag, Absent: tag == ""})
		if !errors.Is(err, ErrChanged) {
			return failed(err, "change the member "+name)
		}
	}
}

func (s *Store) putMember(ctx context.Context, m storedMember, c Condition) error {
	m.Teams = nil
	return s.putSealed(ctx, memberFolder+m.Name, m, c)
}

// getMember reads a member with their teams.
func (s *Store) getMember(ctx context.Context, name string) (m storedMember, tag string, err error) {
	if err := deployments.ValidateName("member", name); err != nil {
		return m, "", err
	}
	if tag, err = s.getSealed(ctx, memberFolder+name, &m); err == nil {
		m.Teams, err = s.teamsOf(ctx, m.Joined)
	}
	return m, tag, err
}
