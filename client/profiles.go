package client

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// ChangeProfile changes a profile, or makes one. It is sent once: each change is a version.
func (c *Client) ChangeProfile(ctx context.Context, change deployments.ProfileChange) (deployments.Profile, error) {
	m, err := once(ctx, c, c.profiles.ChangeProfile, wire.FromProfileChange(change))
	return wire.ToProfile(m.GetProfile()), err
}

// Profile describes a profile.
func (c *Client) Profile(ctx context.Context, organization, name string) (deployments.Profile, error) {
	m, err := repeat(ctx, c, c.profiles.GetProfile, &api.GetProfileRequest{Organization: organization, Name: name})
	return wire.ToProfile(m.GetProfile()), err
}

// Profiles lists the profiles of an organization.
func (c *Client) Profiles(ctx context.Context, organization string) ([]deployments.Profile, error) {
	m, err := repeat(ctx, c, c.profiles.ListProfiles, &api.ListProfilesRequest{Organization: organization})
	return wire.ToProfiles(m.GetProfiles()), err
}

// RemoveProfile removes a profile.
func (c *Client) RemoveProfile(ctx context.Context, organization, name string) error {
	_, err := once(ctx, c, c.profiles.RemoveProfile, &api.RemoveProfileRequest{Organization: organization, Name: name})
	return err
}
