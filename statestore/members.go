package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/seal"
)

const memberFolder = "members/"

// Member returns a member; CodeNotFound when there is none of this name.
func (s *Store) Member(ctx context.Context, name string) (deployments.Member, error) {
	m, _, err := s.getMember(ctx, name)
	if errors.Is(err, ErrAbsent) || err == nil && len(m.Grants) == 0 {
		return m, noMember(name)
	}
	return m, err
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
			m = deployments.Member{Name: name, Damaged: err.Error() + ", or remove it and add the member again"}
		case err != nil && !errors.Is(err, ErrAbsent):
			return nil, err
		}
		if len(m.Grants) > 0 || m.Damaged != "" {
			members = append(members, m)
		}
	}
	return members, nil
}

// GrantMember creates a member, or replaces a member's grant for the grant's organization.
func (s *Store) GrantMember(ctx context.Context, name string, g deployments.Grant) error {
	if err := g.Validate(); err != nil {
		return err
	}
	return s.changeMember(ctx, name, func(m *deployments.Member, found bool) error {
		if !found {
			*m = deployments.Member{Name: name, Created: s.now().UTC()}
		}
		m.Grants = append(otherGrants(m.Grants, g.Organization), g)
		slices.SortFunc(m.Grants, func(a, b deployments.Grant) int {
			return strings.Compare(a.Organization, b.Organization)
		})
		return nil
	})
}

// RemoveMember removes a member's grants for an organization; an empty organization means all. A member without grants
// is gone. CodeNotFound when there is no such member or grant.
func (s *Store) RemoveMember(ctx context.Context, name, organization string) error {
	return s.changeMember(ctx, name, func(m *deployments.Member, found bool) error {
		if !found {
			return noMember(name)
		}
		rest := otherGrants(m.Grants, organization)
		if len(rest) == len(m.Grants) {
			return deployments.Errorf(deployments.CodeNotFound, "the member %s may do nothing in the organization %s",
				name, organization)
		}
		m.Grants = rest
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
	ctx context.Context, name string, change func(m *deployments.Member, found bool) error,
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
		if err := change(&m, len(m.Grants) > 0); err != nil {
			return err
		}
		err = s.putMember(ctx, m, Condition{Tag: tag, Absent: tag == ""})
		if !errors.Is(err, ErrChanged) {
			return failed(err, "change the member "+name)
		}
	}
}

func (s *Store) putMember(ctx context.Context, m deployments.Member, c Condition) error {
	plain, err := json.Marshal(m)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write the member %s: %w", m.Name, err)
	}
	key := memberFolder + m.Name
	_, err = s.objects.Put(ctx, key, s.keys.Box(seal.PurposeStore).Seal(plain, key), c)
	return failed(err, "write the member "+m.Name)
}

func (s *Store) getMember(ctx context.Context, name string) (deployments.Member, string, error) {
	var m deployments.Member
	if err := deployments.ValidateName("member", name); err != nil {
		return m, "", err
	}
	key := memberFolder + name
	o, err := s.objects.Get(ctx, key)
	if err != nil {
		return m, "", failed(err, "read the member "+name)
	}
	plain, err := s.unseal(s.keys.Box(seal.PurposeStore), o.Data, key, key)
	if err != nil {
		return m, "", err
	}
	if err := json.Unmarshal(plain, &m); err != nil {
		return m, "", damaged(key, err)
	}
	return m, o.Tag, nil
}
