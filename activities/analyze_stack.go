package activities

import (
	"context"
	"encoding/json"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"go.temporal.io/sdk/temporal"
)

// AnalyzeStack asks the policy packs about what the stack holds. It changes nothing, so it may run any number of times.
// An error of a policy pack is a part of the result.
func (a *Activities) AnalyzeStack(ctx context.Context, in deployments.AnalyzeStackInput) (engine.StackAnalyzed, error) {
	result := engine.StackAnalyzed{Op: in.Command.Op}
	s, err := a.hosted(ctx, in.Update, in.Base)
	if err != nil {
		return result, failure.Of(err)
	}
	beats := heartbeat.Start(ctx, a.Heart)
	defer beats.Stop()
	ctx, cancel := beats.UntilCancelled(ctx)
	defer cancel()
	states, err := a.statesOf(ctx, in)
	if err != nil {
		return result, failure.Of(err)
	}
	err = panics.Do("checking the policies of the stack", func() error {
		return s.retried(ctx, func() (err error) {
			result.Analysis, err = s.analyzeStack(ctx, states, in.Command.DeleteBeforeReplace)
			return err
		})
	})
	if beats.WasCancelled() {
		return result, temporal.NewCanceledError()
	}
	hide := s.redactor(ctx, bagsOfStates(states)...)
	own, internal := failure.OfService(err)
	switch {
	case ctx.Err() != nil:
		return result, ctx.Err()
	case internal:
		return result, hide.Failure(own)
	case err != nil:
		result.Analysis, result.Error = nil, hide(pluginhost.ErrorText(err))
	}
	hide.Analysis(result.Analysis)
	return result, nil
}

func bagsOfStates(states []engine.State) []engine.Bag {
	var bags []engine.Bag
	for i := range states {
		bags = append(bags, failure.BagsOf(nil, &states[i])...)
	}
	return bags
}

// statesOf returns the states of an analysis of the stack.
func (a *Activities) statesOf(ctx context.Context, in deployments.AnalyzeStackInput) ([]engine.State, error) {
	if in.Spilled == nil {
		return in.Command.States, nil
	}
	var text []byte
	for n := range in.Spilled.Parts {
		part, err := a.Store.LoadSpilled(ctx, deployments.SpilledPart{Update: in.Update, Name: in.Spilled.Name, Part: n})
		if err != nil {
			return nil, err
		}
		text = append(text, part...)
	}
	var states []engine.State
	if err := json.Unmarshal(text, &states); err != nil {
		return nil, deployments.Errorf(deployments.CodeInternal, "the states to be analysed cannot be read: %w", err)
	}
	return states, nil
}

func (s *session) analyzeStack(
	ctx context.Context, states []engine.State, deleteBeforeReplace map[urn.URN]bool,
) (*engine.Analysis, error) {
	resources, err := s.stackResources(ctx, states, deleteBeforeReplace)
	if err != nil {
		return nil, err
	}
	result := &engine.Analysis{}
	for _, pack := range s.policyPacks {
		err := pack.use(ctx, func(analyzer *pluginhost.Analyzer) error {
			response, err := analyzer.AnalyzeStack(ctx, resources)
			if err != nil {
				return err
			}
			result.Packs = append(result.Packs, pack.named("", ""))
			violations, found := pack.violations(response)
			result.Violations = append(result.Violations, violations...)
			summary := pack.summarize(plugin.AnalyzerPolicyTypeStack, found, response.NotApplicable)
			s.put(apitype.EngineEvent{PolicyAnalyzeStackSummaryEvent: &apitype.PolicyAnalyzeStackSummaryEvent{
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
func (s *session) stackResources(
	ctx context.Context, states []engine.State, deleteBeforeReplace map[urn.URN]bool,
) ([]plugin.AnalyzerStackResource, error) {
	providers := map[urn.URN]*plugin.AnalyzerProviderResource{}
	var resources []plugin.AnalyzerStackResource
	for _, state := range states {
		outputs, err := s.values.Decode(ctx, state.Outputs)
		if err != nil {
			return nil, failure.Internal(err)
		}
		if token.IsProvider(state.Type) {
			inputs, err := s.values.Decode(ctx, state.Inputs)
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
