package access

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// teams has an object for each team. Who is in a team is written in the objects of the members: a member's token is
// checked more often than a team is listed.
func (s *Store) teams() owned[deployments.Team] {
	return owned[deployments.Team]{
		Store: s, kind: "team", created: func(t *deployments.Team) *time.Time { return &t.Created },
		size: deployments.Team.Size,
		damaged: func(organization, name, why string) deployments.Team {
			return deployments.Team{Name: name, Grant: deployments.Grant{Organization: organization}, Damaged: why}
		},
	}
}

// membership is a team of the member's organization that a member is in.
type membership struct {
	Team string `json:"team"`
	// Since is when the team was created: a later team may have the same name.
	Since time.Time `json:"since"`
}

// GrantTeam creates a team, or replaces a team's grant.
func (s *Store) GrantTeam(ctx context.Context, name string, g deployments.Grant) error {
	t := deployments.Team{Name: name, Grant: g}
	if err := t.Validate(); err != nil {
		return err
	}
	return s.teams().put(ctx, g.Organization, name, t)
}

// ListTeams describes the teams, sorted by organization and name.
func (s *Store) ListTeams(ctx context.Context) ([]deployments.Team, error) {
	return s.TeamsOf(ctx, deployments.AnyOrganization)
}

// TeamsOf describes the teams of an organization, or all with AnyOrganization, sorted by organization and name.
func (s *Store) TeamsOf(ctx context.Context, organization string) ([]deployments.Team, error) {
	members, err := s.MembersOf(ctx, organization)
	if err != nil {
		return nil, err
	}
	type team struct{ organization, name string }
	in := map[team][]string{}
	for _, m := range members {
		for _, t := range m.Teams {
			in[team{m.Organization, t.Name}] = append(in[team{m.Organization, t.Name}], m.Name)
		}
	}
	teams, err := s.teams().list(ctx, organization)
	for i, t := range teams {
		teams[i].Members = in[team{t.Grant.Organization, t.Name}]
	}
	return teams, err
}

// AnyTeam describes a team without its members, which may be damaged; CodeNotFound when there is none of this name.
func (s *Store) AnyTeam(ctx context.Context, organization, name string) (deployments.Team, error) {
	return s.teams().any(ctx, organization, name)
}

// RemoveTeam removes a team; CodeNotFound when there is none of this name.
func (s *Store) RemoveTeam(ctx context.Context, organization, name string) error {
	return s.teams().remove(ctx, organization, name)
}

// JoinTeam adds a member to a team, and creates the member of its organization if there is none of this name.
func (s *Store) JoinTeam(ctx context.Context, organization, team, member string) error {
	t, _, err := s.teams().get(ctx, organization, team)
	if errors.Is(err, bucket.ErrAbsent) {
		return s.teams().none(organization, team)
	}
	if err != nil {
		return err
	}
	return s.changeMember(ctx, organization, member, func(m *storedMember, found bool) error {
		if !found {
			*m = s.newMember(organization, member)
		}
		m.Joined = append(otherTeams(m.Joined, team), membership{team, t.Created})
		if len(m.Joined) > deployments.MaxTeams {
			return deployments.Errorf(deployments.CodeInvalid, "%s is in %d teams, and can be in no more: give them a role "+
				"of their own, or remove them from a team", member, deployments.MaxTeams)
		}
		return nil
	})
}

// LeaveTeam removes a member from a team; CodeNotFound when they are not in it.
func (s *Store) LeaveTeam(ctx context.Context, organization, team, member string) error {
	return s.changeMember(ctx, organization, member, func(m *storedMember, _ bool) error {
		rest := otherTeams(m.Joined, team)
		if len(rest) == len(m.Joined) {
			return deployments.Errorf(deployments.CodeNotFound, "%s is not in the team %s of %s", member, team, organization)
		}
		m.Joined = rest
		return nil
	})
}

func otherTeams(joined []membership, team string) []membership {
	return slices.DeleteFunc(slices.Clone(joined), func(m membership) bool { return m.Team == team })
}

// readTeam reads a team.
type readTeam func(ctx context.Context, organization, name string) (deployments.Team, error)

func (s *Store) readTeam(ctx context.Context, organization, name string) (deployments.Team, error) {
	t, _, err := s.teams().get(ctx, organization, name)
	return t, err
}

// eachTeamOnce reads each team once, whoever is in it. What it has read is a part of a list.
func (s *Store) eachTeamOnce(l *bucket.Budget) readTeam {
	var mu sync.Mutex
	type answer struct {
		deployments.Team
		err error
	}
	read := map[string]func() answer{}
	return func(ctx context.Context, organization, name string) (deployments.Team, error) {
		mu.Lock()
		once := read[organization+"/"+name]
		if once == nil {
			once = sync.OnceValue(func() answer {
				t, err := s.readTeam(ctx, organization, name)
				if err == nil {
					err = l.Keep(t.Size())
				}
				return answer{t, err}
			})
			read[organization+"/"+name] = once
		}
		mu.Unlock()
		found := once()
		return found.Team, found.err
	}
}

// teamsOf returns the teams of an organization's member that still are those which the member has joined.
func teamsOf(
	ctx context.Context, organization string, joined []membership, read readTeam,
) ([]deployments.Team, error) {
	var teams []deployments.Team
	for _, m := range joined {
		t, err := read(ctx, organization, m.Team)
		switch {
		case errors.Is(err, deployments.ErrTooLarge):
			return nil, err
		case errors.Is(err, bucket.ErrAbsent), bucket.Unreadable(err) != nil, err == nil && !t.Created.Equal(m.Since):
			continue // it allows nothing
		case err != nil:
			return nil, err
		}
		teams = append(teams, t)
	}
	return teams, nil
}
