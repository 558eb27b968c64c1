package grpcapi

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

type updates struct {
	api.UnsafeDeploymentsServer // a method without a handler does not compile
	service                     deployments.Service
}

// Submit gives the update the authority of its caller.
func (u *updates) Submit(ctx context.Context, m *api.SubmitRequest) (*api.SubmitResponse, error) {
	request := wire.ToRequest(m)
	request.Initiator = initiatorOf(ctx, request.Initiator)
	request.Authority = callerOf(ctx).Delegated()
	accepted, err := u.service.Submit(ctx, request)
	if err != nil {
		return nil, err
	}
	return wire.FromAccepted(accepted), nil
}

// Watch leaves out the logged events that the client has already.
func (u *updates) Watch(m *api.WatchRequest, stream api.Deployments_WatchServer) error {
	skip := m.GetAfter() // by stream
	return u.service.Watch(stream.Context(), wire.ToUpdate(m.GetUpdate()), func(e deployments.WatchEvent) error {
		if e.Logged() && skip[e.Stream] > 0 {
			skip[e.Stream]--
			return nil
		}
		item, err := wire.FromWatchEvent(e)
		if err != nil {
			return err
		}
		return stream.Send(item)
	})
}

func (u *updates) Cancel(ctx context.Context, m *api.CancelRequest) (*api.CancelResponse, error) {
	return &api.CancelResponse{}, u.service.Cancel(ctx, wire.ToUpdate(m.GetUpdate()), m.GetForced())
}

func (u *updates) Resolve(ctx context.Context, m *api.ResolveRequest) (*api.ResolveResponse, error) {
	return &api.ResolveResponse{}, u.service.Resolve(ctx, wire.ToUpdate(m.GetUpdate()), m.GetUrn(), m.GetId())
}

func (u *updates) ListOngoing(ctx context.Context, m *api.ListOngoingRequest) (*api.ListOngoingResponse, error) {
	list, err := Visible{u.service, callerOf(ctx)}.Ongoing(ctx, m.GetOrganization())
	return &api.ListOngoingResponse{Updates: wire.FromInfos(list)}, err
}
