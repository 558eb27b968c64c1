package client

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// DeriveToken makes a token that may do what the client's may, as long as that lasts.
func (c *Client) DeriveToken(ctx context.Context, t deployments.Token) (string, error) {
	m, err := once(ctx, c, c.tokens.DeriveToken, wire.FromDerivedToken(t))
	return m.GetText(), err
}

// GrantTeam creates a team, or replaces a team's grant.
func (c *Client) GrantTeam(ctx context.Context, name string, g deployments.Grant) error {
	_, err := repeat(ctx, c, c.teams.GrantTeam, &api.GrantTeamRequest{Name: name, Grant: wire.FromGrant(g)})
	return err
}

// ListTeams lists the teams that the caller administers.
func (c *Client) ListTeams(ctx context.Context) ([]deployments.Team, error) {
	m, err := repeat(ctx, c, c.teams.ListTeams, &api.ListTeamsRequest{})
	return wire.ToTeams(m.GetTeams()), err
}

// RemoveTeam removes a team.
func (c *Client) RemoveTeam(ctx context.Context, organization, name string) error {
	_, err := once(ctx, c, c.teams.RemoveTeam, &api.RemoveTeamRequest{Organization: organization, Name: name})
	return err
}

// JoinTeam adds a member to a team.
func (c *Client) JoinTeam(ctx context.Context, organization, team, member string) error {
	_, err := repeat(ctx, c, c.teams.JoinTeam,
		&api.JoinTeamRequest{Organization: organization, Team: team, Member: member})
	return err
}

// LeaveTeam removes a member from a team.
func (c *Client) LeaveTeam(ctx context.Context, organization, team, member string) error {
	_, err := once(ctx, c, c.teams.LeaveTeam,
		&api.LeaveTeamRequest{Organization: organization, Team: team, Member: member})
	return err
}

// PutTrust creates a trust, or replaces one.
func (c *Client) PutTrust(ctx context.Context, t deployments.Trust) error {
	_, err := repeat(ctx, c, c.trusts.PutTrust, &api.PutTrustRequest{Trust: wire.FromTrust(t)})
	return err
}

// ListTrusts lists the trusts that the caller administers.
func (c *Client) ListTrusts(ctx context.Context) ([]deployments.Trust, error) {
	m, err := repeat(ctx, c, c.trusts.ListTrusts, &api.ListTrustsRequest{})
	return wire.ToTrusts(m.GetTrusts()), err
}

// RemoveTrust removes a trust.
func (c *Client) RemoveTrust(ctx context.Context, organization, name string) error {
	_, err := once(ctx, c, c.trusts.RemoveTrust, &api.RemoveTrustRequest{Organization: organization, Name: name})
	return err
}
