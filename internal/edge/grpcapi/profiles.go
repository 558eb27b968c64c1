package grpcapi

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// profiles reports why the caller may not manage the profiles of an organization. A profile may be for any stack of it,
// so an admin of some stacks is not enough.
func (a Administered) profiles(organization string) error {
	if a.whole(organization) {
		return nil
	}
	return deployments.Errorf(deployments.CodeForbidden, "profiles of an organization need the role admin over all of "+
		"%s, which this token does not have: ask an admin of that organization", organization)
}

// ChangeProfile changes a profile in the caller's name, or makes one.
func (a Administered) ChangeProfile(ctx context.Context, c deployments.ProfileChange) (deployments.Profile, error) {
	if err := a.profiles(c.Organization); err != nil {
		return deployments.Profile{}, err
	}
	c.By = a.Caller.Name()
	return a.Service.ChangeProfile(ctx, c)
}

// Profile describes a profile.
func (a Administered) Profile(ctx context.Context, organization, name string) (deployments.Profile, error) {
	if err := a.profiles(organization); err != nil {
		return deployments.Profile{}, err
	}
	return a.Service.Profile(ctx, organization, name)
}

// RemoveProfile removes a profile.
func (a Administered) RemoveProfile(ctx context.Context, organization, name string) error {
	if err := a.profiles(organization); err != nil {
		return err
	}
	return a.Service.RemoveProfile(ctx, organization, name)
}

// Profiles lists the profiles of an organization. Who is no admin of all of it sees what a stack's configuration needs.
func (a Administered) Profiles(ctx context.Context, organization string) ([]deployments.Profile, error) {
	if !a.Caller.HasIn(viewer, organization) {
		return nil, deployments.Errorf(deployments.CodeNotFound, "this token sees nothing of an organization %.200q, and so "+
			"not its profiles either", organization)
	}
	list, err := a.Service.Profiles(ctx, organization)
	if !a.whole(organization) {
		for i, p := range list {
			list[i] = deployments.Profile{Organization: p.Organization, Name: p.Name, Description: p.Description,
				Version: p.Version, Changed: p.Changed, Damaged: p.Damaged}
		}
	}
	return list, err
}

type profiles struct {
	api.UnsafeProfilesServer // a method without a handler does not compile
	service                  Service
}

func (s *profiles) of(ctx context.Context) Administered {
	return Administered{s.service, callerOf(ctx)}
}

func (s *profiles) ChangeProfile(
	ctx context.Context, m *api.ChangeProfileRequest,
) (*api.ChangeProfileResponse, error) {
	p, err := s.of(ctx).ChangeProfile(ctx, wire.ToProfileChange(m))
	return &api.ChangeProfileResponse{Profile: wire.FromProfile(p)}, err
}

func (s *profiles) GetProfile(ctx context.Context, m *api.GetProfileRequest) (*api.GetProfileResponse, error) {
	p, err := s.of(ctx).Profile(ctx, m.GetOrganization(), m.GetName())
	return &api.GetProfileResponse{Profile: wire.FromProfile(p)}, err
}

func (s *profiles) ListProfiles(ctx context.Context, m *api.ListProfilesRequest) (*api.ListProfilesResponse, error) {
	list, err := s.of(ctx).Profiles(ctx, m.GetOrganization())
	return &api.ListProfilesResponse{Profiles: wire.FromProfiles(list)}, err
}

func (s *profiles) RemoveProfile(
	ctx context.Context, m *api.RemoveProfileRequest,
) (*api.RemoveProfileResponse, error) {
	return &api.RemoveProfileResponse{}, s.of(ctx).RemoveProfile(ctx, m.GetOrganization(), m.GetName())
}
