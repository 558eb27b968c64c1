package grpcapi

import (
	"context"
	"slices"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// ListTrusts lists the trusts whose grants the caller administers.
func (a Administered) ListTrusts(ctx context.Context) ([]deployments.Trust, error) {
	list, err := a.Service.TrustsOf(ctx, a.Caller.Within())
	return slices.DeleteFunc(list, func(t deployments.Trust) bool { return !a.Caller.Administers(t.Grant) }), err
}

// PutTrust makes a trust, or replaces one, if the caller administers what its tokens may do before and after.
func (a Administered) PutTrust(ctx context.Context, t deployments.Trust) error {
	before, found, err := there(ctx, a.Service.AnyTrust, t.Organization, t.Name)
	if err != nil {
		return err
	}
	if found && !a.Caller.Administers(before.Grant) || !a.Caller.Administers(t.Grant) {
		return deployments.Errorf(deployments.CodeForbidden, "this token does not administer all that the tokens of such a "+
			"trust may do: an admin of the organization, or of all, can do it")
	}
	return a.Service.PutTrust(ctx, t)
}

// RemoveTrust removes a trust that the caller administers.
func (a Administered) RemoveTrust(ctx context.Context, organization, name string) error {
	t, found, err := there(ctx, a.Service.AnyTrust, organization, name)
	if err != nil {
		return err
	}
	if !found || !a.Caller.Administers(t.Grant) {
		return deployments.Errorf(deployments.CodeNotFound, "the organization %s has no trust %s that this token "+
			"administers", organization, name)
	}
	return a.Service.RemoveTrust(ctx, organization, name)
}

type trusts struct {
	api.UnsafeTrustsServer // a method without a handler does not compile
	service                Service
}

func (s *trusts) of(ctx context.Context) Administered { return Administered{s.service, callerOf(ctx)} }

func (s *trusts) PutTrust(ctx context.Context, m *api.PutTrustRequest) (*api.PutTrustResponse, error) {
	return &api.PutTrustResponse{}, s.of(ctx).PutTrust(ctx, wire.ToTrust(m.GetTrust()))
}

func (s *trusts) ListTrusts(ctx context.Context, _ *api.ListTrustsRequest) (*api.ListTrustsResponse, error) {
	list, err := s.of(ctx).ListTrusts(ctx)
	return &api.ListTrustsResponse{Trusts: wire.FromTrusts(list)}, err
}

func (s *trusts) RemoveTrust(ctx context.Context, m *api.RemoveTrustRequest) (*api.RemoveTrustResponse, error) {
	return &api.RemoveTrustResponse{}, s.of(ctx).RemoveTrust(ctx, m.GetOrganization(), m.GetName())
}
