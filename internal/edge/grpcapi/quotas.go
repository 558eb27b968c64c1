package grpcapi

import (
	"context"
	"slices"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// Quotas describes the quota of an organization of which the caller sees anything, or of all those.
func (v Visible) Quotas(ctx context.Context, organization string) ([]deployments.QuotaUse, error) {
	within, ok := v.within(organization)
	if ok && within != "" {
		ok = v.Caller.HasIn(viewer, within)
	}
	if !ok {
		return nil, deployments.Errorf(deployments.CodeNotFound, "this token sees nothing of an organization %.200q, and so "+
			"not its quota either", organization)
	}
	list, err := v.Service.Quotas(ctx, within)
	return slices.DeleteFunc(list, func(q deployments.QuotaUse) bool {
		return !v.Caller.HasIn(viewer, q.Organization)
	}), err
}

// SetQuota changes the quota of an organization in the caller's name.
func (a Administered) SetQuota(ctx context.Context, c deployments.QuotaChange) error {
	if err := a.operates("a quota"); err != nil {
		return err
	}
	c.By = a.Caller.Name()
	return a.Service.SetQuota(ctx, c)
}

type quotas struct {
	api.UnsafeQuotasServer // a method without a handler does not compile
	service                Service
}

func (s *quotas) ListQuotas(ctx context.Context, m *api.ListQuotasRequest) (*api.ListQuotasResponse, error) {
	list, err := Visible{s.service, callerOf(ctx)}.Quotas(ctx, m.GetOrganization())
	return &api.ListQuotasResponse{Quotas: wire.FromQuotas(list)}, err
}

func (s *quotas) SetQuota(ctx context.Context, m *api.SetQuotaRequest) (*api.SetQuotaResponse, error) {
	of := Administered{s.service, callerOf(ctx)}
	return &api.SetQuotaResponse{}, of.SetQuota(ctx, wire.ToQuotaChange(m))
}
