package monitor

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// getResource is the function by which SDKs resolve references to resources. The monitor implements it itself.
const getResource = "pulumi:pulumi:getResource"

// Invoke calls a function of a provider. The result is unknown while a resource that it depends on does not exist.
func (m *Monitor) Invoke(
	ctx context.Context, req *pulumirpc.ResourceInvokeRequest,
) (*pulumirpc.ResourceInvokeResponse, error) {
	function, err := token.ParseFunction(req.GetTok())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	options := m.unmarshalOptions(req.GetTok())
	options.KeepOutputValues = true
	args, err := plugin.UnmarshalProperties(req.GetArgs(), options)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "arguments of %s: %v", function, err)
	}
	parent, err := urn.ParseOptional(req.GetParent())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "parent of %s: %v", function, err)
	}
	if args, err = m.transformInvoke(ctx, req, args); err != nil {
		return nil, err
	}
	dependencies, err := parseURNs("dependency of "+req.GetTok(), req.GetDependsOn())
	if err != nil {
		return nil, err
	}
	sources := properties.Dependencies(resource.NewProperty(args), nil)
	switch exist, err := m.registry.allExist(ctx, append(dependencies, sources...)); {
	case err != nil:
		return nil, status.FromContextError(err).Err()
	case !exist:
		return &pulumirpc.ResourceInvokeResponse{Unknown: true}, nil
	}
	result, err := m.invoke(ctx, req, parent, properties.WithoutOutputs(args))
	if err != nil {
		return nil, err
	}
	for key, v := range result.Properties { // providers are sent no output values, so all depends on all
		result.Properties[key] = properties.DependingOn(v, sources)
	}
	returned, err := plugin.MarshalProperties(result.Properties, plugin.MarshalOptions{
		Label: req.GetTok(), KeepUnknowns: true, KeepSecrets: true,
		KeepResources:  req.GetAcceptResources() || req.GetTok() == getResource,
		KeepByteString: req.GetAcceptsByteString(), KeepOutputValues: req.GetAcceptOutputValues(),
		WorkingDirectory: m.project.ProgramDir,
	})
	if err != nil {
		return nil, rpcError(err)
	}
	return &pulumirpc.ResourceInvokeResponse{Return: returned, Failures: rpcFailures(result.Failures)}, nil
}

func (m *Monitor) invoke(
	ctx context.Context, req *pulumirpc.ResourceInvokeRequest, parent urn.URN, args resource.PropertyMap,
) (plugin.InvokeResponse, error) {
	function := tokens.ModuleMember(req.GetTok())
	named := req.GetProvider()
	if above, ok := m.registry.get(parent); ok && named == "" {
		named = above.providers[string(token.Package(function))]
	}
	p, err := m.request(token.Package(function), req)
	if err != nil {
		return plugin.InvokeResponse{}, err
	}
	ref, err := m.provider(ctx, named, p)
	if err != nil {
		return plugin.InvokeResponse{}, err
	}
	if function == getResource { // its provider stands in the state, as in Pulumi's
		return m.getResource(ctx, args)
	}
	provider, err := m.configured(ctx, ref, p.extension)
	if err != nil {
		return plugin.InvokeResponse{}, err
	}
	result, err := pluginhost.Await(ctx, func() (plugin.InvokeResponse, error) {
		return provider.Invoke(ctx, plugin.InvokeRequest{Tok: function, Args: args, Preview: m.goal.DryRun})
	})
	if err != nil {
		return result, status.Errorf(codes.Unknown, "invocation of %s returned an error: %s", function,
			pluginhost.ErrorText(err))
	}
	return result, nil
}

// getResource returns the state of a resource of this epoch.
func (m *Monitor) getResource(ctx context.Context, args resource.PropertyMap) (plugin.InvokeResponse, error) {
	if !args["urn"].IsString() {
		return plugin.InvokeResponse{}, status.Errorf(codes.InvalidArgument, "%s needs a urn", getResource)
	}
	u := urn.URN(args["urn"].StringValue())
	res, ok := m.registry.get(u)
	if !ok {
		return plugin.InvokeResponse{}, status.Errorf(codes.NotFound, "unknown resource %s", u)
	}
	state, err := m.values.Decode(ctx, res.object)
	if err != nil {
		return plugin.InvokeResponse{}, rpcError(err)
	}
	id := resource.NewProperty(res.id)
	if res.custom && res.id == "" {
		id = resource.MakeComputed(resource.NewProperty(""))
	}
	return plugin.InvokeResponse{Properties: resource.PropertyMap{
		"urn": resource.NewProperty(string(u)), "id": id, "provider": resource.NewProperty(res.provider),
		"state": resource.NewProperty(state),
	}}, nil
}

// Call calls a method of a component, or of a provider.
func (m *Monitor) Call(ctx context.Context, req *pulumirpc.ResourceCallRequest) (*pulumirpc.CallResponse, error) {
	options := m.unmarshalOptions(req.GetTok())
	options.KeepOutputValues, options.UpgradeToOutputValues = true, true
	args, err := plugin.UnmarshalProperties(req.GetArgs(), options)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "arguments of %s: %v", req.GetTok(), err)
	}
	provider, err := m.calledProvider(ctx, req)
	if err != nil {
		return nil, err
	}
	call := plugin.CallRequest{Tok: tokens.ModuleMember(req.GetTok()), Args: args, Info: m.callInfo()}
	call.Options.ArgDependencies = map[resource.PropertyKey][]urn.URN{}
	for name, deps := range req.GetArgDependencies() {
		urns, err := parseURNs("dependency of argument "+name, deps.GetUrns())
		if err != nil {
			return nil, err
		}
		call.Options.ArgDependencies[resource.PropertyKey(name)] = urns
	}
	for key, v := range args {
		call.Options.ArgDependencies[key] = properties.Sorted(properties.Dependencies(v,
			call.Options.ArgDependencies[key]))
	}
	result, err := pluginhost.Await(ctx, func() (plugin.CallResponse, error) { return provider.Call(ctx, call) })
	if err != nil {
		return nil, status.Errorf(codes.Unknown, "call of %s returned an error: %s", req.GetTok(),
			pluginhost.ErrorText(err))
	}
	dependencies := map[string]*pulumirpc.CallResponse_ReturnDependencies{}
	for name, deps := range outputDependencies(result.ReturnDependencies, result.Return) {
		dependencies[name] = &pulumirpc.CallResponse_ReturnDependencies{Urns: deps}
	}
	sources := properties.Dependencies(resource.NewProperty(args), nil)
	for key, v := range result.Return { // providers are not asked for output values, so all depends on all
		result.Return[key] = properties.DependingOn(v, slices.Concat(sources, result.ReturnDependencies[key]))
	}
	returned, err := plugin.MarshalProperties(result.Return, plugin.MarshalOptions{
		Label: req.GetTok(), KeepUnknowns: true, KeepSecrets: true, KeepResources: true,
		KeepByteString: req.GetAcceptsByteString(), KeepOutputValues: req.GetAcceptOutputValues(),
		WorkingDirectory: m.project.ProgramDir,
	})
	if err != nil {
		return nil, rpcError(err)
	}
	return &pulumirpc.CallResponse{
		Return: returned, ReturnDependencies: dependencies, Failures: rpcFailures(result.Failures),
	}, nil
}

// calledProvider returns the provider that a call is for: the provider itself if the method is its own, the named one,
// or that of the resource whose method is called.
func (m *Monitor) calledProvider(
	ctx context.Context, req *pulumirpc.ResourceCallRequest,
) (*pluginhost.Provider, error) {
	self := req.GetArgs().GetFields()["__self__"].GetStructValue().GetFields()
	if token.IsProvider(req.GetTok()) {
		ref := self["urn"].GetStringValue() + resource.URNNameDelimiter + self["id"].GetStringValue()
		if _, err := token.ParseReference(ref); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "%s needs the provider as __self__: %v", req.GetTok(), err)
		}
		return m.configured(ctx, ref, engine.Bag{})
	}
	named := req.GetProvider()
	if u := self["urn"].GetStringValue(); named == "" && u != "" {
		res, ok := m.registry.get(urn.URN(u))
		if !ok {
			return nil, status.Errorf(codes.NotFound, "unknown resource %s", u)
		}
		if named = res.provider; named == "" {
			named = res.constructedBy
		}
	}
	pkg := token.Package(req.GetTok())
	if pkg == "" {
		return nil, status.Errorf(codes.InvalidArgument, "method %q is not of the form package:module:name",
			req.GetTok())
	}
	p, err := m.request(pkg, req)
	if err != nil {
		return nil, err
	}
	ref, err := m.provider(ctx, named, p)
	if err != nil {
		return nil, err
	}
	return m.configured(ctx, ref, p.extension)
}

func (m *Monitor) callInfo() plugin.CallInfo {
	return plugin.CallInfo{
		Project: m.goal.Project, Stack: m.goal.Stack, Config: m.config.RevealByKey(), DryRun: m.goal.DryRun,
		Parallel: parallel32(m.goal.Parallel), MonitorAddress: m.address,
	}
}

func rpcFailures(failures []plugin.CheckFailure) []*pulumirpc.CheckFailure {
	var list []*pulumirpc.CheckFailure
	for _, f := range failures {
		list = append(list, &pulumirpc.CheckFailure{Property: string(f.Property), Reason: f.Reason})
	}
	return list
}
