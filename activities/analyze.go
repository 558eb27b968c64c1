package activities

import (
	"context"
	"encoding/json"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"go.temporal.io/sdk/temporal"
)

// AnalyzeStack asks the policy packs about what the stack holds. It changes nothing, so it may run any number of times.
// An error of a policy pack is a part of the result.
func (a *Activities) AnalyzeStack(ctx context.Context, in deployments.AnalyzeStackInput) (engine.StackAnalyzed, error) {
	result := engine.StackAnalyzed{Op: in.Command.Op}
	s, err := a.sessions.Hosted(ctx, in.Update, in.Base)
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
		return hosted.Retried(ctx, func() (err error) {
			result.Analysis, err = s.Policies().AnalyzeStack(ctx, states, in.Command.DeleteBeforeReplace)
			return err
		})
	})
	if beats.WasCancelled() {
		return result, temporal.NewCanceledError()
	}
	hide := s.Update().Host.Redactor(ctx, bagsOfStates(states)...)
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
		part, err := a.Store.Updates.LoadSpilled(ctx, deployments.SpilledPart{Update: in.Update, Name: in.Spilled.Name,
			Part: n})
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
