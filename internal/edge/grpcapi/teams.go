package grpcapi

import (
	"context"
	"slices"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// ListTeams lists the teams whose grants the caller administers.
func (a Administered) ListTeams(ctx context.Context) ([]deployments.Team, error) {
	list, err := a.Service.TeamsOf(ctx, a.Caller.Within())
	return slices.DeleteFunc(list, func(t deployments.Team) bool { return !a.Caller.Administers(t.Grant) }), err
}

// team returns a team that the caller administers; false when there is none.
func (a Administered) team(ctx context.Context, organization, name string) (deployments.Team, bool, error) {
	t, found, err := there(ctx, a.Service.AnyTeam, organization, name)
	return t, found && a.Caller.Administers(t.Grant), err
}

func noTeam(organization, name string) error {
	return deployments.Errorf(deployments.CodeNotFound, "the organization %s has no team %s that this token administers",
		organization, name)
}

// GrantTeam makes a team, or gives one another grant, if the caller administers what it may do before and after.
func (a Administered) GrantTeam(ctx context.Context, name string, g deployments.Grant) error {
	before, found, err := there(ctx, a.Service.AnyTeam, g.Organization, name)
	if err != nil {
		return err
	}
	if found && !a.Caller.Administers(before.Grant) || !a.Caller.Administers(g) {
		return deployments.Errorf(deployments.CodeForbidden, "this token does not administer all that such a team may do: "+
			"an admin of the organization, or of all, can do it")
	}
	return a.Service.GrantTeam(ctx, name, g)
}

// RemoveTeam removes a team that the caller administers.
func (a Administered) RemoveTeam(ctx context.Context, organization, name string) error {
	if _, found, err := a.team(ctx, organization, name); err != nil || !found {
		return first(err, noTeam(organization, name))
	}
	return a.Service.RemoveTeam(ctx, organization, name)
}

// JoinTeam adds a member to a team, if the caller administers all that the member may do.
func (a Administered) JoinTeam(ctx context.Context, organization, team, member string) error {
	t, found, err := a.team(ctx, organization, team)
	if err != nil || !found {
		return first(err, noTeam(organization, team))
	}
	m, err := a.member(ctx, organization, member)
	if err != nil {
		return err
	}
	if !a.Caller.Administers(append(m.All(), t.Grant)...) {
		return deployments.Errorf(deployments.CodeForbidden, "this token does not administer all that %s may do in %s: an "+
			"admin of the organization can do it", member, organization)
	}
	return a.Service.JoinTeam(ctx, organization, team, member)
}

// LeaveTeam removes a member from a team that the caller administers.
func (a Administered) LeaveTeam(ctx context.Context, organization, team, member string) error {
	if _, found, err := a.team(ctx, organization, team); err != nil || !found {
		return first(err, noTeam(organization, team))
	}
	return a.Service.LeaveTeam(ctx, organization, team, member)
}

type teams struct {
	api.UnsafeTeamsServer // a method without a handler does not compile
	service               Service
}

func (s *teams) of(ctx context.Context) Administered { return Administered{s.service, callerOf(ctx)} }

func (s *teams) GrantTeam(ctx context.Context, m *api.GrantTeamRequest) (*api.GrantTeamResponse, error) {
	return &api.GrantTeamResponse{}, s.of(ctx).GrantTeam(ctx, m.GetName(), wire.ToGrant(m.GetGrant()))
}

func (s *teams) ListTeams(ctx context.Context, _ *api.ListTeamsRequest) (*api.ListTeamsResponse, error) {
	list, err := s.of(ctx).ListTeams(ctx)
	return &api.ListTeamsResponse{Teams: wire.FromTeams(list)}, err
}

func (s *teams) RemoveTeam(ctx context.Context, m *api.RemoveTeamRequest) (*api.RemoveTeamResponse, error) {
	return &api.RemoveTeamResponse{}, s.of(ctx).RemoveTeam(ctx, m.GetOrganization(), m.GetName())
}

func (s *teams) JoinTeam(ctx context.Context, m *api.JoinTeamRequest) (*api.JoinTeamResponse, error) {
	return &api.JoinTeamResponse{}, s.of(ctx).JoinTeam(ctx, m.GetOrganization(), m.GetTeam(), m.GetMember())
}

func (s *teams) LeaveTeam(ctx context.Context, m *api.LeaveTeamRequest) (*api.LeaveTeamResponse, error) {
	return &api.LeaveTeamResponse{}, s.of(ctx).LeaveTeam(ctx, m.GetOrganization(), m.GetTeam(), m.GetMember())
}
