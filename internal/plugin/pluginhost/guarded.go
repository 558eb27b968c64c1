package pluginhost

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	"google.golang.org/grpc/status"
)

// guarded turns panics of the SDK's client of a provider into errors: the client panics if a provider's answer is not
// as it expects. Methods of plugin.Provider that guarded lacks are not called.
type guarded struct{ plugin.Provider }

// providerService is the service of providers, in the names of spans.
const providerService = "pulumirpc.ResourceProvider"

// plainStatus returns the error of a call with the status that the SDK has wrapped.
func plainStatus(err error) error {
	if e := (*rpcerror.Error)(nil); errors.As(err, &e) {
		return status.Error(e.Code(), "")
	}
	return err
}

func guard[Request, Response any](
	ctx context.Context, name string, req Request, call func(context.Context, Request) (Response, error),
) (resp Response, err error) {
	ctx, span := tracing.Child(ctx, providerService+"/"+name, tracing.Client, tracing.RPC(providerService+"/"+name)...)
	defer func() { span.EndRPC(plainStatus(err)) }()
	defer panics.Into(&err, "calling "+name+" of a provider")
	return call(ctx, req)
}

func (g guarded) Handshake(
	ctx context.Context, req plugin.ProviderHandshakeRequest,
) (*plugin.ProviderHandshakeResponse, error) {
	return guard(ctx, "Handshake", req, g.Provider.Handshake)
}

func (g guarded) Parameterize(
	ctx context.Context, req plugin.ParameterizeRequest,
) (plugin.ParameterizeResponse, error) {
	return guard(ctx, "Parameterize", req, g.Provider.Parameterize)
}

func (g guarded) GetSchema(ctx context.Context, req plugin.GetSchemaRequest) (plugin.GetSchemaResponse, error) {
	return guard(ctx, "GetSchema", req, g.Provider.GetSchema)
}

func (g guarded) GetMapping(ctx context.Context, req plugin.GetMappingRequest) (plugin.GetMappingResponse, error) {
	return guard(ctx, "GetMapping", req, g.Provider.GetMapping)
}

func (g guarded) CheckConfig(ctx context.Context, req plugin.CheckConfigRequest) (plugin.CheckConfigResponse, error) {
	resp, err := guard(ctx, "CheckConfig", req, g.Provider.CheckConfig)
	if resp.Properties == nil { // an answer without inputs: the SDK's later calls panic on nil
		resp.Properties = resource.PropertyMap{}
	}
	return resp, err
}

func (g guarded) DiffConfig(ctx context.Context, req plugin.DiffConfigRequest) (plugin.DiffConfigResponse, error) {
	return guard(ctx, "DiffConfig", req, g.Provider.DiffConfig)
}

func (g guarded) Configure(ctx context.Context, req plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	return guard(ctx, "Configure", req, g.Provider.Configure)
}

func (g guarded) Check(ctx context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	resp, err := guard(ctx, "Check", req, g.Provider.Check)
	if resp.Properties == nil { // as in CheckConfig
		resp.Properties = resource.PropertyMap{}
	}
	return resp, err
}

func (g guarded) Diff(ctx context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	return guard(ctx, "Diff", req, g.Provider.Diff)
}

func (g guarded) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	return guard(ctx, "Create", req, g.Provider.Create)
}

func (g guarded) Read(ctx context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	return guard(ctx, "Read", req, g.Provider.Read)
}

func (g guarded) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	return guard(ctx, "Update", req, g.Provider.Update)
}

func (g guarded) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	return guard(ctx, "Delete", req, g.Provider.Delete)
}

func (g guarded) Construct(ctx context.Context, req plugin.ConstructRequest) (plugin.ConstructResponse, error) {
	return guard(ctx, "Construct", req, g.Provider.Construct)
}

func (g guarded) Invoke(ctx context.Context, req plugin.InvokeRequest) (plugin.InvokeResponse, error) {
	return guard(ctx, "Invoke", req, g.Provider.Invoke)
}

func (g guarded) Call(ctx context.Context, req plugin.CallRequest) (plugin.CallResponse, error) {
	return guard(ctx, "Call", req, g.Provider.Call)
}

func (g guarded) SignalCancellation(ctx context.Context) (err error) {
	defer panics.Into(&err, "calling Cancel of a provider")
	return g.Provider.SignalCancellation(ctx)
}
