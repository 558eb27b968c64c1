package policies

import (
	"context"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// AnalyzeStack asks the policy packs about what the stack holds.
func (a *Packs) AnalyzeStack(
	ctx context.Context, states []engine.State, deleteBeforeReplace map[urn.URN]bool,
) (*engine.Analysis, error) {
	resources, err := a.stackResources(ctx, states, deleteBeforeReplace)
	if err != nil {
		return nil, err
	}
	result := &engine.Analysis{}
	for _, pack := range a.packs {
		err := pack.use(ctx, func(analyzer *pluginhost.Analyzer) error {
			response, err := analyzer.AnalyzeStack(ctx, resources)
			if err != nil {
				return err
			}
			result.Packs = append(result.Packs, pack.named("", ""))
			violations, found := pack.violations(response)
			result.Violations = append(result.Violations, violations...)
			summary := pack.summarize(plugin.AnalyzerPolicyTypeStack, found, response.NotApplicable)
			a.put(apitype.EngineEvent{PolicyAnalyzeStackSummaryEvent: &apitype.PolicyAnalyzeStackSummaryEvent{
				PolicyPackName: pack.info.Name, PolicyPackVersion: pack.info.Version, Passed: summary.passed,
				Failed: summary.failed,
			}})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return result, nil
}

// stackResources returns what policy packs get of a stack: the outputs of every resource, with the inputs of its
// provider, and the options deleteBeforeReplace.
func (a *Packs) stackResources(
	ctx context.Context, states []engine.State, deleteBeforeReplace map[urn.URN]bool,
) ([]plugin.AnalyzerStackResource, error) {
	providers := map[urn.URN]*plugin.AnalyzerProviderResource{}
	var resources []plugin.AnalyzerStackResource
	for _, state := range states {
		outputs, err := a.options.Values.Decode(ctx, state.Outputs)
		if err != nil {
			return nil, failure.Internal(err)
		}
		if token.IsProvider(state.Type) {
			inputs, err := a.options.Values.Decode(ctx, state.Inputs)
			if err != nil {
				return nil, failure.Internal(err)
			}
			providers[state.URN] = providerResource(state.URN, inputs)
		}
		r := plugin.AnalyzerStackResource{
			AnalyzerResource: plugin.AnalyzerResource{
				URN: state.URN, Type: state.Type, Name: state.URN.Name(), Properties: outputs,
				Options: plugin.AnalyzerResourceOptions{
					Protect: state.Protect, IgnoreChanges: state.IgnoreChanges,
					AdditionalSecretOutputs: keysOf(state.AdditionalSecretOutputs), AliasURNs: state.Aliases,
					CustomTimeouts: customTimeouts(state.Timeouts), Parent: state.Parent,
				},
			},
			Parent: state.Parent, Dependencies: state.Dependencies,
			PropertyDependencies: map[resource.PropertyKey][]urn.URN{},
		}
		if before, ok := deleteBeforeReplace[state.URN]; ok {
			r.Options.DeleteBeforeReplace = &before
		}
		for _, d := range state.PropertyDependencies {
			r.PropertyDependencies[resource.PropertyKey(d.Property)] = d.URNs
		}
		if ref, err := token.ParseReference(state.Provider); err == nil {
			r.Provider = providers[ref.URN()] // it stands before what it manages
		}
		resources = append(resources, r)
	}
	return resources, nil
}
