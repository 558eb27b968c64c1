package client

import (
	"context"
	"errors"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// Submit submits an update. It is repeated after a lost answer; the request id makes that idempotent.
func (c *Client) Submit(ctx context.Context, r deployments.UpdateRequest) (deployments.Accepted, error) {
	m, err := repeat(ctx, c, c.updates.Submit, wire.FromRequest(r))
	return wire.ToAccepted(m), err
}

// errEnded ends a stream from inside its callback.
var errEnded = errors.New("the event log is complete")

// Watch sends every event once, however often the connection is lost. Progress is that of the moment.
func (c *Client) Watch(ctx context.Context, u deployments.UpdateName, fn func(deployments.WatchEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		seen    = map[string]int64{} // by stream
		begun   bool
		stopped error // the error of fn
	)
	follow := func(ctx context.Context) error {
		stream, err := c.updates.Watch(ctx, &api.WatchRequest{Update: wire.FromUpdate(u), After: seen})
		if err != nil {
			return err
		}
		err = receive(stream.Recv, func(m *api.WatchResponse) error {
			c.silence.reached()
			begun = true
			e, err := wire.ToWatchEvent(m)
			if err == nil {
				err = fn(e)
			}
			if err != nil {
				stopped = err
				return errEnded
			}
			if e.Logged() {
				seen[e.Stream]++
			}
			if e.End != nil {
				return errEnded
			}
			return nil
		})
		if err == nil { // a log without an end: its writer has died
			err = deployments.Errorf(deployments.CodeUnavailable, "the service closed the event log of %s before its "+
				"end", u)
		}
		return err
	}
	for {
		err := c.retryUntilReached(ctx, follow)
		switch {
		case stopped != nil:
			return stopped
		case errors.Is(err, errEnded):
			return nil
		case deployments.CodeOf(err) == deployments.CodeUnavailable && begun:
			continue // as long as ctx lasts
		}
		return err
	}
}

// Cancel cancels an update.
func (c *Client) Cancel(ctx context.Context, u deployments.UpdateName, forced bool) error {
	_, err := repeat(ctx, c, c.updates.Cancel, &api.CancelRequest{Update: wire.FromUpdate(u), Forced: forced})
	return err
}

// Resolve answers an undecidable create.
func (c *Client) Resolve(ctx context.Context, u deployments.UpdateName, urn, id string) error {
	_, err := repeat(ctx, c, c.updates.Resolve, &api.ResolveRequest{Update: wire.FromUpdate(u), Urn: urn, Id: id})
	return err
}

// Healthy returns once the service answers, or the error that says why it does not within Options.Patience.
func (c *Client) Healthy(ctx context.Context) error { return c.reach(ctx) }

// reach waits until the service answers its health check.
func (c *Client) reach(ctx context.Context) error {
	health := grpc_health_v1.NewHealthClient(c.connection)
	_, err := repeat(ctx, c, health.Check, &grpc_health_v1.HealthCheckRequest{})
	return err
}

// Ongoing lists the updates that run or wait.
func (c *Client) Ongoing(ctx context.Context, organization string) ([]deployments.UpdateInfo, error) {
	m, err := repeat(ctx, c, c.updates.ListOngoing, &api.ListOngoingRequest{Organization: organization})
	return wire.ToInfos(m.GetUpdates()), err
}
