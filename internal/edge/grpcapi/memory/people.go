package memory

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// DeriveToken makes a token from another one.
func (s *Service) DeriveToken(ctx context.Context, t deployments.Token) (string, error) {
	list, err := s.ListTokens(ctx)
	i := slices.IndexFunc(list, func(of deployments.Token) bool { return t.Origin != nil && of.Name == t.Origin.Token })
	switch {
	case err != nil:
		return "", err
	case i >= 0:
		t.Member, t.Organization = list[i].Member, list[i].Organization
		t.Grant, t.Limit = list[i].Grant, list[i].Limit
	default:
		t.Grant = &deployments.Grant{Role: deployments.RoleAdmin, Organization: deployments.AnyOrganization}
	}
	t.Name = t.Origin.Token + "." + t.Name
	return s.addToken(t)
}

// teamsOf gives the teams of a member; s.mu is held.
func (s *Service) teamsOf(organization, member string) (teams []deployments.Team) {
	for _, key := range slices.Sorted(maps.Keys(s.teams)) {
		if t := s.teams[key]; t.Grant.Organization == organization && slices.Contains(t.Members, member) {
			t.Members = nil
			teams = append(teams, t)
		}
	}
	return teams
}

// GrantTeam makes a team, or changes one.
func (s *Service) GrantTeam(_ context.Context, name string, g deployments.Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.teams[g.Organization+"/"+name]
	t.Name, t.Grant, t.Created = name, g, begun
	s.teams[g.Organization+"/"+name] = t
	return nil
}

// ListTeams lists teams.
func (s *Service) ListTeams(context.Context) ([]deployments.Team, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sorted(s.teams), nil
}

func sorted[V any](of map[string]V) (list []V) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		list = append(list, of[key])
	}
	return list
}

// RemoveTeam removes a team.
func (s *Service) RemoveTeam(_ context.Context, organization, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return drop(s.teams, organization, name)
}

func drop[V any](from map[string]V, organization, name string) error {
	key := organization + "/" + name
	if _, ok := from[key]; !ok {
		return deployments.Errorf(deployments.CodeNotFound, "there is no %s", key)
	}
	delete(from, key)
	return nil
}

// JoinTeam adds a member to a team.
func (s *Service) JoinTeam(_ context.Context, organization, team, member string) error {
	return s.changeTeam(organization, team, func(t *deployments.Team) error {
		if !slices.Contains(t.Members, member) {
			t.Members = append(slices.Clone(t.Members), member)
			slices.Sort(t.Members)
		}
		if _, ok := s.members[organization+"/"+member]; !ok {
			s.members[organization+"/"+member] = deployments.Member{Organization: organization, Name: member, Created: begun}
		}
		return nil
	})
}

// LeaveTeam removes a member from a team.
func (s *Service) LeaveTeam(_ context.Context, organization, team, member string) error {
	return s.changeTeam(organization, team, func(t *deployments.Team) error {
		i := slices.Index(t.Members, member)
		if i < 0 {
			return deployments.Errorf(deployments.CodeNotFound, "%s is not in %s", member, team)
		}
		t.Members = slices.Delete(slices.Clone(t.Members), i, i+1)
		return nil
	})
}

func (s *Service) changeTeam(organization, team string, change func(*deployments.Team) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.teams[organization+"/"+team]
	if !ok {
		return deployments.Errorf(deployments.CodeNotFound, "there is no team %s", team)
	}
	err := change(&t)
	s.teams[organization+"/"+team] = t
	return err
}

// PutTrust makes a trust, or replaces one.
func (s *Service) PutTrust(_ context.Context, t deployments.Trust) error {
	if err := t.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Created = begun
	s.trusts[strings.Join([]string{t.Organization, t.Name}, "/")] = t
	return nil
}

// ListTrusts lists trusts.
func (s *Service) ListTrusts(context.Context) ([]deployments.Trust, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sorted(s.trusts), nil
}

// RemoveTrust removes a trust.
func (s *Service) RemoveTrust(_ context.Context, organization, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return drop(s.trusts, organization, name)
}

// AnyTeam describes a team.
func (s *Service) AnyTeam(_ context.Context, organization, name string) (deployments.Team, error) {
	return single(s, s.teams, organization, name)
}

// AnyTrust describes a trust.
func (s *Service) AnyTrust(_ context.Context, organization, name string) (deployments.Trust, error) {
	return single(s, s.trusts, organization, name)
}

func single[V any](s *Service, of map[string]V, organization, name string) (V, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := of[organization+"/"+name]
	if !ok {
		return one, deployments.Errorf(deployments.CodeNotFound, "there is no %s in %s", name, organization)
	}
	return one, nil
}

// of returns what of a list is for an organization, or all with AnyOrganization.
func of[T any](list []T, err error, organization string, within func(T) string) ([]T, error) {
	return slices.DeleteFunc(list, func(one T) bool {
		return organization != deployments.AnyOrganization && within(one) != organization
	}), err
}

// TokensOf lists tokens of an organization.
func (s *Service) TokensOf(ctx context.Context, organization string) ([]deployments.Token, error) {
	list, err := s.ListTokens(ctx)
	return of(list, err, organization, deployments.Token.Within)
}

// MembersOf lists members of an organization.
func (s *Service) MembersOf(ctx context.Context, organization string) ([]deployments.Member, error) {
	list, err := s.ListMembers(ctx)
	return of(list, err, organization, func(m deployments.Member) string { return m.Organization })
}

// TeamsOf lists teams of an organization.
func (s *Service) TeamsOf(ctx context.Context, organization string) ([]deployments.Team, error) {
	list, err := s.ListTeams(ctx)
	return of(list, err, organization, func(t deployments.Team) string { return t.Grant.Organization })
}

// TrustsOf lists trusts of an organization.
func (s *Service) TrustsOf(ctx context.Context, organization string) ([]deployments.Trust, error) {
	list, err := s.ListTrusts(ctx)
	return of(list, err, organization, func(t deployments.Trust) string { return t.Organization })
}
