package access

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

const (
	// MemberFolder has the members, in a folder for each organization.
	MemberFolder = "members/"
	// ofEvery is the folder of the members of every organization; no organization has such a name.
	ofEvery = "_"
)

// memberKey returns the key of a member. It has the organization in it, so that nobody can give anything to the member
// of another one, whatever the names are (docs/adr/0042).
func memberKey(organization, name string) string {
	if organization == deployments.AnyOrganization {
		organization = ofEvery
	}
	return bucket.Key("members", organization, name)
}

// storedMember is a member at rest: the teams are named, not described.
type storedMember struct {
	deployments.Member
	Joined []membership `json:"joined,omitempty"`
}

func (s *Store) newMember(organization, name string) storedMember {
	return storedMember{Member: deployments.Member{Organization: organization, Name: name, Created: s.sealed.Now().UTC()}}
}

// Member returns a member of an organization; CodeNotFound when there is none of this name.
func (s *Store) Member(ctx context.Context, organization, name string) (deployments.Member, error) {
	return s.member(ctx, organization, name, s.readTeam)
}

func (s *Store) member(ctx context.Context, organization, name string, teams readTeam) (deployments.Member, error) {
	m, _, err := s.getMember(ctx, organization, name, teams)
	if errors.Is(err, bucket.ErrAbsent) || err == nil && len(m.All()) == 0 {
		return m.Member, noMember(organization, name)
	}
	return m.Member, err
}

func noMember(organization, name string) error {
	return deployments.Errorf(deployments.CodeNotFound, "there is no member %s with --organization '%s': `deployctl "+
		"member ls` lists those there are", name, organization)
}

// ListMembers describes the members, sorted by organization and name.
func (s *Store) ListMembers(ctx context.Context) ([]deployments.Member, error) {
	return s.MembersOf(ctx, deployments.AnyOrganization)
}

// MembersOf describes the members of an organization, or all with AnyOrganization, sorted by organization and name.
func (s *Store) MembersOf(ctx context.Context, organization string) ([]deployments.Member, error) {
	folder := MemberFolder
	if organization != deployments.AnyOrganization {
		if err := deployments.ValidateName("organization", organization); err != nil {
			return nil, err
		}
		folder += organization + "/"
	}
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: folder})
	if err != nil {
		return nil, bucket.Failed(err, "list the members")
	}
	list := bucket.NewBudget(ctx)
	teams := s.eachTeamOnce(list)
	members, err := bucket.Gather(list, l.Keys, deployments.Member.Size, func(key string) (deployments.Member, error) {
		of, name, _ := strings.Cut(strings.TrimPrefix(key, MemberFolder), "/")
		if of == ofEvery {
			of = deployments.AnyOrganization
		}
		return s.anyMember(ctx, of, name, teams)
	})
	slices.SortFunc(members, func(a, b deployments.Member) int {
		return cmp.Or(strings.Compare(a.Organization, b.Organization), strings.Compare(a.Name, b.Name))
	})
	return members, err
}

// AnyMember is Member, also for a damaged one.
func (s *Store) AnyMember(ctx context.Context, organization, name string) (deployments.Member, error) {
	return s.anyMember(ctx, organization, name, s.readTeam)
}

func (s *Store) anyMember(
	ctx context.Context, organization, name string, teams readTeam,
) (deployments.Member, error) {
	m, err := s.member(ctx, organization, name, teams)
	if bucket.Unreadable(err) != nil && !errors.Is(err, deployments.ErrTooLarge) {
		return deployments.Member{Organization: organization, Name: name,
			Damaged: err.Error() + ", or remove it and add the member again"}, nil
	}
	return m, err
}

// GrantMember creates a member of the grant's organization, or replaces a member's grant.
func (s *Store) GrantMember(ctx context.Context, name string, g deployments.Grant) error {
	if err := g.Validate(); err != nil {
		return err
	}
	return s.changeMember(ctx, g.Organization, name, func(m *storedMember, found bool) error {
		if !found {
			*m = s.newMember(g.Organization, name)
		}
		m.Grant = &g
		return nil
	})
}

// RemoveMember removes a member of an organization, who may be damaged: what they may do, and that they are in teams.
// CodeNotFound when there is none of this name.
func (s *Store) RemoveMember(ctx context.Context, name, organization string) error {
	if _, _, err := s.getMember(ctx, organization, name, s.readTeam); bucket.Unreadable(err) != nil {
		defer s.callers.forget(organization)
		return bucket.Failed(s.sealed.Objects.Delete(ctx, memberKey(organization, name)), "remove the member "+name)
	}
	return s.changeMember(ctx, organization, name, func(m *storedMember, found bool) error {
		if !found {
			return noMember(organization, name)
		}
		m.Grant, m.Joined = nil, nil
		return nil
	})
}

// changeMember changes a member by compare-and-swap. A member without a grant stays as an object but is not found:
// deleting the object could remove a grant that was given meanwhile.
func (s *Store) changeMember(
	ctx context.Context, organization, name string, change func(m *storedMember, found bool) error,
) error {
	defer s.callers.forget(organization)
	for {
		m, tag, err := s.getMember(ctx, organization, name, s.readTeam)
		if err != nil && !errors.Is(err, bucket.ErrAbsent) {
			return err
		}
		if err := change(&m, len(m.All()) > 0); err != nil {
			return err
		}
		if tag == "" {
			// Whoever was removed counts: their object stays.
			folder := strings.TrimSuffix(memberKey(organization, name), name)
			if err := s.room(ctx, folder, maxMembers, organization, "members, with those that were removed,",
				"member"); err != nil {
				return err
			}
		}
		err = s.putMember(ctx, m, bucket.Condition{Tag: tag, Absent: tag == ""})
		if !errors.Is(err, bucket.ErrChanged) {
			return bucket.Failed(err, "change the member "+name)
		}
	}
}

// room reports, as CodeConflict, that an organization has as many things in a folder as it can have.
func (s *Store) room(ctx context.Context, folder string, most int, organization, kinds, command string) error {
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: folder, Limit: most})
	if err != nil {
		return bucket.Failed(err, "count the "+kinds)
	}
	return tooMany(len(l.Keys), most, organization, kinds, command)
}

func (s *Store) putMember(ctx context.Context, m storedMember, c bucket.Condition) error {
	m.Teams = nil
	return s.sealed.PutJSON(ctx, memberKey(m.Organization, m.Name), m, c)
}

// getMember reads a member with their teams.
func (s *Store) getMember(
	ctx context.Context, organization, name string, teams readTeam,
) (m storedMember, tag string, err error) {
	if err := deployments.ValidateMember(organization, name); err != nil {
		return m, "", err
	}
	if tag, err = s.sealed.GetJSON(ctx, memberKey(organization, name), &m); err == nil {
		m.Teams, err = teamsOf(ctx, organization, m.Joined, teams)
	}
	return m, tag, err
}
