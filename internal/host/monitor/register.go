package monitor

import (
	"context"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// registration is what a program has asked for, as it was read: what the core gets, and what only the monitor needs.
type registration struct {
	engine.Registration
	inputs    resource.PropertyMap // with output values
	providers map[string]string    // by package
	timeouts  *plugin.CustomTimeouts
	own       []*pulumirpc.Callback // its own transforms
}

// RegisterResource registers a resource; a remote component is constructed by its provider. It returns when the
// resource has the registered state. A registration that fails makes the update fail, so that the resource is not
// treated as one that the program has removed.
func (m *Monitor) RegisterResource(
	ctx context.Context, req *pulumirpc.RegisterResourceRequest,
) (*pulumirpc.RegisterResourceResponse, error) {
	resp, err := m.registerResource(ctx, req)
	if err != nil {
		return nil, m.refuse(ctx, err, refusedRegistration(ctx, req))
	}
	return resp, nil
}

func (m *Monitor) registerResource(
	ctx context.Context, req *pulumirpc.RegisterResourceRequest,
) (*pulumirpc.RegisterResourceResponse, error) {
	if err := m.refusedBefore(); err != nil {
		return nil, err
	}
	parent, err := urn.ParseOptional(req.GetParent())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "parent of %s: %v", req.GetName(), err)
	}
	defer m.registry.begin(parent)()
	own := m.transforms.own(req)
	spreadDependencies(req)
	if err := m.transform(ctx, req, m.transformsOf(parent, own)); err != nil {
		return nil, err
	}
	if err := refuseOptions(req); err != nil {
		return nil, err
	}
	if above, ok := m.registry.get(parent); ok {
		inherit(req, above)
	}
	g, err := m.read(ctx, req)
	if err != nil {
		return nil, err
	}
	g.own = own
	if g.Remote {
		return m.construct(ctx, req, g)
	}

	g.inputs = properties.WithoutOutputs(g.inputs)
	if token.IsProvider(g.Type) {
		if err := m.specifyProvider(req, g); err != nil {
			return nil, err
		}
	}
	if g.Inputs, err = m.values.Encode(ctx, g.inputs); err != nil {
		return nil, rpcError(err)
	}
	reply, err := m.register(ctx, g.Registration)
	if err := m.replyError(reply, err); err != nil {
		return nil, err
	}
	if reply.Result != engine.ResultSuccess && !notTargeted(reply) && !req.GetSupportsResultReporting() {
		return nil, &endingError{status.Newf(codes.Internal, "resource %s %s could not be registered", g.Type, g.Name)}
	}
	if err := m.remember(ctx, g, reply); err != nil {
		return nil, err
	}
	if g.Type == engine.BindingType && reply.Result == engine.ResultSuccess {
		reply.ID = g.Name // SDKs want one of a custom resource
	}
	return m.respond(ctx, req, reply)
}

// spreadDependencies lets every property of a request depend on all that the request depends on, if it says nothing
// about properties, as older SDKs do. What transforms add is not concerned.
func spreadDependencies(req *pulumirpc.RegisterResourceRequest) {
	if len(req.GetPropertyDependencies()) > 0 || req.GetRemote() || req.GetUsesOutputValues() {
		return
	}
	req.PropertyDependencies = map[string]*pulumirpc.RegisterResourceRequest_PropertyDependencies{}
	for name := range req.GetObject().GetFields() {
		req.PropertyDependencies[name] = &pulumirpc.RegisterResourceRequest_PropertyDependencies{Urns: req.GetDependencies()}
	}
}

// refuseOptions refuses options that are not supported: otherwise they would be ignored.
func refuseOptions(req *pulumirpc.RegisterResourceRequest) error {
	if len(req.GetStateMigrations()) > 0 {
		return unsupported("state migrations (of " + req.GetType() + " " + req.GetName() + ")")
	}
	if req.GetUsesOutputValues() && len(req.GetPropertyDependencies()) > 0 {
		return status.Error(codes.InvalidArgument, "a request that says its dependencies by output values has them also "+
			"by properties")
	}
	if len(req.GetEnvVarMappings()) > 0 && !token.IsProvider(req.GetType()) {
		return status.Error(codes.InvalidArgument, "envVarMappings can only be used with provider resources")
	}
	return nil
}

// inherit copies the parent's options that the request does not set.
func inherit(req *pulumirpc.RegisterResourceRequest, parent registered) {
	if req.GetDeletedWith() == "" {
		req.DeletedWith = string(parent.deletedWith)
	}
	if req.Protect == nil {
		req.Protect = parent.protect
	}
	if req.RetainOnDelete == nil {
		req.RetainOnDelete = parent.retainOnDelete
	}
	if req.GetProvider() != "" || parent.provider == "" {
		return
	}
	ref, err := token.ParseReference(parent.provider)
	samePackage := err == nil && token.ProviderPackage(ref.URN().Type()) == token.Package(req.GetType())
	if component := !req.GetCustom() && !req.GetRemote(); component || samePackage {
		req.Provider = parent.provider
	}
}

// specifyProvider writes which plugin an explicit provider uses into its inputs, as for default providers.
func (m *Monitor) specifyProvider(req *pulumirpc.RegisterResourceRequest, g *registration) error {
	p, err := m.request(token.ProviderPackage(g.Type), req)
	if err != nil {
		return err
	}
	if p.Version == "" && p.DownloadURL == "" {
		p = m.complete(p)
	}
	p.Env = req.GetEnvVarMappings()
	p.PutInto(g.inputs, p.checksums)
	return nil
}

// remember keeps a registered resource for later requests that refer to it.
func (m *Monitor) remember(ctx context.Context, g *registration, reply engine.Reply) error {
	if reply.URN == "" {
		return nil
	}
	res := registered{
		parent: g.Parent, custom: g.Custom, id: reply.ID, object: reply.Object,
		protect: g.Protect, retainOnDelete: g.RetainOnDelete, deletedWith: g.DeletedWith, provider: g.Provider,
		transforms: g.own,
	}
	if !g.Custom {
		res.providers = g.providers
	}
	m.registry.put(reply.URN, res)
	if token.IsProvider(g.Type) && reply.Result == engine.ResultSuccess {
		_, err := m.keepConfig(ctx, reply, g.inputs)
		return err
	}
	return nil
}

// resultSkip is what SDKs before v3.274 know as skipped; newer ones take it for a failure that another resource caused.
const resultSkip pulumirpc.Result = 2

var results = map[engine.ResultKind]pulumirpc.Result{
	engine.ResultSuccess: pulumirpc.Result_SUCCESS,
	engine.ResultFail:    pulumirpc.Result_FAIL,
	engine.ResultSkip:    resultSkip,
}

// notTargeted reports that a resource is outside the update's targets and does not exist: the program gets unknown
// outputs.
func notTargeted(reply engine.Reply) bool { return reply.Result == engine.ResultSkip && reply.Unknown }

// respond encodes a reply for the program. A component gets no outputs, because they may refer to resources that are
// not registered yet. A resource outside the targets that does not exist is a success with unknown outputs; any other
// reply with unknown outputs is noted in later.
func (m *Monitor) respond(
	ctx context.Context, req *pulumirpc.RegisterResourceRequest, reply engine.Reply,
) (*pulumirpc.RegisterResourceResponse, error) {
	if reply.Unknown && !notTargeted(reply) {
		m.later.Store(true)
	}
	outputs := resource.PropertyMap{}
	if req.GetCustom() { // outputs of a component may refer to resources that are not registered yet
		var err error
		if outputs, err = m.values.Decode(ctx, reply.Object); err != nil {
			return nil, rpcError(err)
		}
	}
	if !req.GetSupportsPartialValues() {
		outputs = properties.WithoutUnknowns(outputs)
	}
	object, err := plugin.MarshalProperties(outputs, plugin.MarshalOptions{
		Label: "outputs of " + string(reply.URN), KeepUnknowns: true,
		KeepSecrets: req.GetAcceptSecrets(), KeepResources: req.GetAcceptResources(),
		KeepByteString: req.GetAcceptsByteString(), WorkingDirectory: m.project.ProgramDir,
	})
	if err != nil {
		return nil, rpcError(err)
	}
	result := results[reply.Result]
	if notTargeted(reply) {
		result = pulumirpc.Result_SUCCESS
	}
	return &pulumirpc.RegisterResourceResponse{
		Urn: string(reply.URN), Id: reply.ID, Object: object, Stables: reply.Stables,
		Result: result, Unknown: reply.Unknown && (notTargeted(reply) || reply.Object.Empty()),
	}, nil
}
