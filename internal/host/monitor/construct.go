package monitor

import (
	"context"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// construct has a provider construct a component. The provider registers the component and its children with this
// monitor.
func (m *Monitor) construct(
	ctx context.Context, req *pulumirpc.RegisterResourceRequest, g *registration,
) (*pulumirpc.RegisterResourceResponse, error) {
	if g.Name == "" {
		return nil, status.Errorf(codes.InvalidArgument, "a component of type %s needs a name", g.Type)
	}
	provider, err := m.configured(ctx, g.Provider, g.Extension)
	if err != nil {
		return nil, err
	}
	options, err := m.constructOptions(ctx, g)
	if err != nil {
		return nil, err
	}
	result, err := pluginhost.Await(ctx, func() (plugin.ConstructResponse, error) {
		return provider.Construct(ctx, plugin.ConstructRequest{
			Info: m.constructInfo(), Type: g.Type, Name: g.Name, Parent: g.Parent, Inputs: g.inputs, Options: options,
		})
	})
	if err != nil {
		return nil, status.Errorf(codes.Unknown, "constructing %s %s: %v", g.Type, g.Name, pluginhost.ErrorText(err))
	}

	outputs := properties.WithoutOutputs(result.Outputs)
	bag, err := m.values.Encode(ctx, outputs)
	if err != nil {
		return nil, rpcError(err)
	}
	m.registry.put(result.URN, registered{
		parent: g.Parent, object: bag, protect: g.Protect, retainOnDelete: g.RetainOnDelete,
		deletedWith: g.DeletedWith, providers: g.providers, constructedBy: g.Provider, transforms: g.own,
	})
	if !req.GetSupportsPartialValues() {
		outputs = properties.WithoutUnknowns(outputs)
	}
	object, err := plugin.MarshalProperties(outputs, plugin.MarshalOptions{
		Label: "outputs of " + string(result.URN), KeepUnknowns: true,
		KeepSecrets: req.GetAcceptSecrets(), KeepResources: req.GetAcceptResources(),
		KeepByteString: req.GetAcceptsByteString(), WorkingDirectory: m.project.ProgramDir,
	})
	if err != nil {
		return nil, rpcError(err)
	}
	dependencies := map[string]*pulumirpc.RegisterResourceResponse_PropertyDependencies{}
	for name, deps := range outputDependencies(result.OutputDependencies, result.Outputs) {
		dependencies[name] = &pulumirpc.RegisterResourceResponse_PropertyDependencies{Urns: deps}
	}
	return &pulumirpc.RegisterResourceResponse{
		Urn: string(result.URN), Object: object, PropertyDependencies: dependencies, Result: pulumirpc.Result_SUCCESS,
	}, nil
}

func (m *Monitor) constructOptions(ctx context.Context, g *registration) (plugin.ConstructOptions, error) {
	options := plugin.ConstructOptions{
		Dependencies: g.Dependencies, Protect: g.Protect, Providers: g.providers,
		PropertyDependencies:    map[resource.PropertyKey][]urn.URN{},
		AdditionalSecretOutputs: g.AdditionalSecretOutputs, CustomTimeouts: g.timeouts, DeletedWith: g.DeletedWith,
		ReplaceWith: g.ReplaceWith, DeleteBeforeReplace: g.DeleteBeforeReplace, IgnoreChanges: g.IgnoreChanges,
		ReplaceOnChanges: g.ReplaceOnChanges, RetainOnDelete: g.RetainOnDelete,
	}
	for point, names := range g.Hooks {
		if options.ResourceHooks == nil {
			options.ResourceHooks = map[resource.HookType][]string{}
		}
		options.ResourceHooks[resource.HookType(point)] = names
	}
	for _, d := range g.PropertyDependencies {
		options.PropertyDependencies[resource.PropertyKey(d.Property)] = d.URNs
	}
	for _, a := range g.Aliases {
		options.Aliases = append(options.Aliases, resource.Alias{
			URN: a.URN, Name: a.Name, Type: a.Type, Stack: a.Stack, Project: a.Project, Parent: a.Parent,
			NoParent: a.NoParent,
		})
	}
	trigger, err := m.values.Decode(ctx, g.Trigger)
	if err != nil {
		return options, rpcError(err)
	}
	options.ReplacementTrigger = property.New(property.Null)
	if v, ok := trigger["value"]; ok {
		options.ReplacementTrigger = resource.FromResourcePropertyValue(v)
	}
	return options, nil
}

func (m *Monitor) constructInfo() plugin.ConstructInfo {
	info := plugin.ConstructInfo{
		Project: m.goal.Project, Stack: m.goal.Stack, Organization: m.goal.Organization,
		Config: m.config.RevealByKey(), DryRun: m.goal.DryRun, Parallel: parallel32(m.goal.Parallel),
		MonitorAddress: m.address,
	}
	for _, key := range m.config.SecretKeys() {
		if k, err := config.ParseKey(key); err == nil {
			info.ConfigSecretKeys = append(info.ConfigSecretKeys, k)
		}
	}
	return info
}

// outputDependencies returns the dependencies that a provider reported, and those of output values in its response, by
// property.
func outputDependencies(reported map[resource.PropertyKey][]urn.URN, values resource.PropertyMap) map[string][]string {
	all := map[string][]string{}
	add := func(key resource.PropertyKey, deps []urn.URN) {
		for _, d := range deps {
			all[string(key)] = append(all[string(key)], string(d))
		}
	}
	for key, deps := range reported {
		add(key, deps)
	}
	for key, v := range values {
		add(key, properties.Dependencies(v, nil))
	}
	for name, deps := range all {
		all[name] = properties.Sorted(deps)
	}
	return all
}
