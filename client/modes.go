package client

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// Mode returns the mode that the service is in. CodeFormat: it is of an earlier release, which has none.
func (c *Client) Mode(ctx context.Context) (deployments.Mode, error) {
	m, err := repeat(ctx, c, c.modes.GetMode, &api.GetModeRequest{})
	return wire.ToMode(m.GetMode()), err
}

// SetMode puts the service into a mode; the zero Mode ends that which it is in.
func (c *Client) SetMode(ctx context.Context, m deployments.Mode) error {
	_, err := repeat(ctx, c, c.modes.SetMode, &api.SetModeRequest{Mode: wire.FromMode(m)})
	return err
}
