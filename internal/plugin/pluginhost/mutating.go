package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// malformedResponse is the error of a call whose answer cannot be used. The call may have had its effect.
type malformedResponse struct{ err error }

func (e *malformedResponse) Error() string { return e.err.Error() }
func (e *malformedResponse) Unwrap() error { return e.err }

// Create creates a resource; see Classify about its errors.
func (p *Provider) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	defer p.wire.hold(ctx, req.URN)()
	before := p.wire.calls(req.URN)
	resp, err := p.Provider.Create(ctx, req)
	if wrong := checkID(resp.ID); wrong != nil {
		return plugin.CreateResponse{}, &malformedResponse{wrong}
	}
	return resp, p.wire.explain(err, req.URN, before)
}

// NotReady is the error of a call that has had its effect, where what it made is not ready yet.
type NotReady struct {
	*plugin.InitError
	After time.Duration // until it is to be looked at again
}

func (e *NotReady) Unwrap() error { return e.InitError }

// Update updates a resource; see Classify about its errors.
func (p *Provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	defer p.wire.hold(ctx, req.URN)()
	before := p.wire.calls(req.URN)
	resp, err := p.Provider.Update(ctx, req)
	return resp, p.wire.explain(err, req.URN, before)
}

// Delete deletes a resource; see Classify about its errors.
func (p *Provider) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	before := p.wire.calls(req.URN)
	resp, err := p.Provider.Delete(ctx, req)
	return resp, p.wire.explain(err, req.URN, before)
}

// checkID reports that an id is too long to be recorded: it passes through Temporal with the result of its step.
func checkID(id resource.ID) error {
	if len(id) > deployments.MaxResourceIDLength {
		return fmt.Errorf("the id of the resource has %d bytes, and at most %d can be recorded", len(id),
			deployments.MaxResourceIDLength)
	}
	return nil
}

// explain turns an error with which the SDK rejects an answer into a malformedResponse: such an error has no status,
// and a call was made for the URN. An error before the call stays as it is, because nothing had an effect.
func (w *wire) explain(err error, urn resource.URN, before int) error {
	var answer *rpcerror.Error
	var initialisation *plugin.InitError
	if after, ok := w.takeNotReady(urn); ok && errors.As(err, &initialisation) {
		return &NotReady{initialisation, after}
	}
	if err == nil || errors.As(err, &answer) || errors.As(err, &initialisation) || w.calls(urn) == before {
		return err
	}
	return &malformedResponse{err}
}

func (w *wire) calls(urn resource.URN) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[string(urn)]
}

func (w *wire) note(urn string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[urn]++
}

// readNotReady reads of a changing call's error what the SDK does not pass on: that what exists is not ready, and when
// to look again.
func (w *wire) readNotReady(urn string, err error) {
	var after *errdetails.RetryInfo
	exists := false
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			after = d
		case *pulumirpc.ErrorResourceInitFailed:
			exists = true
		}
	}
	if !exists || after == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notReady[urn] = after.GetRetryDelay().AsDuration()
}

func (w *wire) takeNotReady(urn resource.URN) (after time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	after, ok = w.notReady[string(urn)]
	delete(w.notReady, string(urn))
	return after, ok
}

func (w *wire) Create(
	ctx context.Context, in *pulumirpc.CreateRequest, opts ...grpc.CallOption,
) (*pulumirpc.CreateResponse, error) {
	w.note(in.GetUrn())
	resp, err := w.ResourceProviderClient.Create(w.holding(ctx, in.GetUrn()), in, opts...)
	w.readNotReady(in.GetUrn(), err)
	return resp, err
}

func (w *wire) Update(
	ctx context.Context, in *pulumirpc.UpdateRequest, opts ...grpc.CallOption,
) (*pulumirpc.UpdateResponse, error) {
	w.note(in.GetUrn())
	resp, err := w.ResourceProviderClient.Update(w.holding(ctx, in.GetUrn()), in, opts...)
	w.readNotReady(in.GetUrn(), err)
	return resp, err
}

func (w *wire) Delete(
	ctx context.Context, in *pulumirpc.DeleteRequest, opts ...grpc.CallOption,
) (*emptypb.Empty, error) {
	w.note(in.GetUrn())
	return w.ResourceProviderClient.Delete(ctx, in, opts...)
}
