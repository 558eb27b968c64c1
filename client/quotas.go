package client

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// Quotas describes the quota of an organization, and what it uses; with an empty name, of all that the caller sees.
func (c *Client) Quotas(ctx context.Context, organization string) ([]deployments.QuotaUse, error) {
	m, err := repeat(ctx, c, c.quotas.ListQuotas, &api.ListQuotasRequest{Organization: organization})
	return wire.ToQuotas(m.GetQuotas()), err
}

// SetQuota changes the quota of an organization.
func (c *Client) SetQuota(ctx context.Context, change deployments.QuotaChange) error {
	_, err := repeat(ctx, c, c.quotas.SetQuota, wire.FromQuotaChange(change))
	return err
}
