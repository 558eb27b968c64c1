package pluginhost

import (
	"context"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

// Check checks the inputs of a resource.
func (p *Provider) Check(ctx context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	defer p.wire.hold(ctx, req.URN)()
	return p.Provider.Check(ctx, req)
}

// Read reads a resource.
func (p *Provider) Read(ctx context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	defer p.wire.hold(ctx, req.URN)()
	resp, err := p.Provider.Read(ctx, req)
	if wrong := checkID(resp.ID); wrong != nil {
		return plugin.ReadResponse{}, rpcerror.Convert(unreadable(wrong))
	}
	return resp, err
}

// hold has the answers of the calls for a URN keep their memory as the context of their caller says, until done.
func (w *wire) hold(ctx context.Context, urn resource.URN) (done func()) {
	hold := intake.HoldOf(ctx)
	if hold == nil {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds[string(urn)] = hold
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.holds[string(urn)] == hold {
			delete(w.holds, string(urn))
		}
	}
}

// holding returns the context of a call for a URN.
func (w *wire) holding(ctx context.Context, urn string) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holds[urn].In(ctx)
}

// Check is that of the client.
func (w *wire) Check(
	ctx context.Context, in *pulumirpc.CheckRequest, opts ...grpc.CallOption,
) (*pulumirpc.CheckResponse, error) {
	return w.ResourceProviderClient.Check(w.holding(ctx, in.GetUrn()), in, opts...)
}

// Read is that of the client.
func (w *wire) Read(
	ctx context.Context, in *pulumirpc.ReadRequest, opts ...grpc.CallOption,
) (*pulumirpc.ReadResponse, error) {
	resp, err := w.ResourceProviderClient.Read(w.holding(ctx, in.GetUrn()), in, opts...)
	if wrong := checkID(resource.ID(resp.GetId())); wrong != nil {
		return nil, unreadable(wrong)
	}
	return resp, err
}
