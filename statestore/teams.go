package statestore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// teams has an object for each team. Who is in a team is written in the objects of the members: a member's token is
// checked more often than a team is listed.
func (s *Store) teams() owned[deployments.Team] {
	return owned[deployments.Team]{
		Store: s, kind: "team", created: func(t *deployments.Team) *time.Time { return &t.Created },
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
	members, err := s.ListMembers(ctx)
	if err != nil {
		return nil, err
	}
	teams, err := s.teams().list(ctx, s.teams().folder())
	for i, t := range teams {
		for _, m := range members {
			if m.Organization == t.Grant.Organization && slices.ContainsFunc(m.Teams, func(of deployments.Team) bool {
				return of.Name == t.Name
			}) {
				teams[i].Members = append(teams[i].Members, m.Name)
			}
		}
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
	if errors.Is(err, ErrAbsent) {
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

// teamsOf returns the teams of an organization's member that still are those which the member has joined.
func (s *Store) teamsOf(ctx context.Context, organization string, joined []membership) ([]deployments.Team, error) {
	var teams []deployments.Team
	for _, m := range joined {
		t, _, err := s.teams().get(ctx, organization, m.Team)
		switch {
		case errors.Is(err, ErrAbsent), unreadable(err) != nil, err == nil && !t.Created.Equal(m.Since):
			continue // it allows nothing
		case err != nil:
			return nil, err
		}
		teams = append(teams, t)
	}
	return teams, nil
}
