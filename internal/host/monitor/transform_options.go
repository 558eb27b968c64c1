package monitor

import (
	"maps"
	"slices"

	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// transformOptions returns the options of a request as transforms get them. Older Node SDKs invert NoParent of aliases:
// wrongParents.
func (m *Monitor) transformOptions(
	req *pulumirpc.RegisterResourceRequest, wrongParents bool,
) *pulumirpc.TransformResourceOptions {
	options := &pulumirpc.TransformResourceOptions{
		DependsOn: req.GetDependencies(), Protect: req.Protect, IgnoreChanges: req.GetIgnoreChanges(),
		ReplaceOnChanges: req.GetReplaceOnChanges(), Version: req.GetVersion(), Provider: req.GetProvider(),
		CustomTimeouts: req.GetCustomTimeouts(), PluginDownloadUrl: req.GetPluginDownloadURL(),
		RetainOnDelete: req.RetainOnDelete, DeletedWith: req.GetDeletedWith(),
		AdditionalSecretOutputs: req.GetAdditionalSecretOutputs(), Providers: req.GetProviders(),
		PluginChecksums: req.GetPluginChecksums(), Hooks: req.GetHooks(), Import: req.GetImportId(),
		HideDiff: req.GetHideDiffs(), ReplaceWith: req.GetReplaceWith(),
		ReplacementTrigger: req.GetReplacementTrigger(),
	}
	if req.GetDeleteBeforeReplaceDefined() || req.GetDeleteBeforeReplace() {
		options.DeleteBeforeReplace = &req.DeleteBeforeReplace
	}
	if options.Provider == "" && (req.GetCustom() || req.GetRemote()) {
		pkg := string(token.Package(tokens.Type(req.GetType())))
		above, _ := m.registry.get(urn.URN(req.GetParent()))
		if options.Provider = req.GetProviders()[pkg]; options.Provider == "" {
			options.Provider = above.providers[pkg]
		}
	}
	for _, text := range req.GetAliasURNs() {
		options.Aliases = append(options.Aliases, &pulumirpc.Alias{Alias: &pulumirpc.Alias_Urn{Urn: text}})
	}
	for _, alias := range req.GetAliases() {
		if spec := alias.GetSpec(); spec != nil && wrongParents && spec.GetParentUrn() == "" {
			alias = &pulumirpc.Alias{Alias: &pulumirpc.Alias_Spec_{Spec: &pulumirpc.Alias_Spec{
				Name: spec.GetName(), Type: spec.GetType(), Stack: spec.GetStack(), Project: spec.GetProject(),
				Parent: &pulumirpc.Alias_Spec_NoParent{NoParent: !spec.GetNoParent()},
			}}}
		}
		options.Aliases = append(options.Aliases, alias)
	}
	return options
}

// setOptions puts options that transforms have returned into the request.
func setOptions(req *pulumirpc.RegisterResourceRequest, o *pulumirpc.TransformResourceOptions) {
	req.Protect, req.RetainOnDelete = o.Protect, o.RetainOnDelete
	req.IgnoreChanges, req.ReplaceOnChanges = o.GetIgnoreChanges(), o.GetReplaceOnChanges()
	req.HideDiffs, req.AdditionalSecretOutputs = o.GetHideDiff(), o.GetAdditionalSecretOutputs()
	req.Version, req.PluginDownloadURL = o.GetVersion(), o.GetPluginDownloadUrl()
	req.PluginChecksums, req.CustomTimeouts = o.GetPluginChecksums(), o.GetCustomTimeouts()
	req.AliasURNs, req.Aliases, req.AliasSpecs = nil, o.GetAliases(), true
	req.Provider, req.Providers = o.GetProvider(), o.GetProviders()
	req.DeletedWith, req.ReplaceWith = o.GetDeletedWith(), o.GetReplaceWith()
	req.ReplacementTrigger = o.GetReplacementTrigger()
	req.DeleteBeforeReplace, req.DeleteBeforeReplaceDefined = o.GetDeleteBeforeReplace(), o.DeleteBeforeReplace != nil
	req.Hooks, req.ImportId = o.GetHooks(), o.GetImport()
}

// setDependencies makes the dependencies of a request those that its properties tell, and those of the options.
func setDependencies(
	req *pulumirpc.RegisterResourceRequest, props resource.PropertyMap, o *pulumirpc.TransformResourceOptions,
) {
	req.Dependencies = slices.Clone(o.GetDependsOn())
	req.PropertyDependencies = map[string]*pulumirpc.RegisterResourceRequest_PropertyDependencies{}
	for _, key := range slices.Sorted(maps.Keys(props)) {
		var urns []string
		for _, u := range properties.Sorted(properties.Dependencies(props[key], nil)) {
			urns = append(urns, string(u))
		}
		req.PropertyDependencies[string(key)] = &pulumirpc.RegisterResourceRequest_PropertyDependencies{Urns: urns}
		req.Dependencies = append(req.Dependencies, urns...)
	}
	req.Dependencies = properties.Sorted(req.Dependencies)
}
