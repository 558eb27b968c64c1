package activities

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
)

// PlanResources runs Check and Diff of a list of resources. It changes nothing, so it may run any number of times. A
// provider's error or check failure is part of the result of its resource; the activity then succeeds.
func (a *Activities) PlanResources(ctx context.Context, in deployments.PlanInput) (deployments.PlanOutput, error) {
	s, err := a.sessions.Hosted(ctx, in.Update, in.Base)
	if err != nil {
		return deployments.PlanOutput{}, failure.Of(err)
	}
	beats := heartbeat.Start(ctx, a.Heart)
	defer beats.Stop()
	return s.Plans().All(ctx, beats, in)
}

// PlanCascade finds the dependents that must be replaced together with a resource that is deleted before it is
// replaced. It changes nothing, so it may run any number of times. An error of a provider is part of the result.
func (a *Activities) PlanCascade(ctx context.Context, in deployments.CascadeInput) (engine.CascadePlanned, error) {
	s, err := a.sessions.Hosted(ctx, in.Update, in.Base)
	if err != nil {
		return engine.CascadePlanned{}, failure.Of(err)
	}
	defer heartbeat.Start(ctx, a.Heart).Stop()
	return s.Plans().Cascade(ctx, in.Cascade)
}

// CompareProviders asks a provider with a new configuration whether it can manage the resources of the old
// configuration, or they must be replaced. It changes nothing, so it may run any number of times. An error of the
// provider is part of the result.
func (a *Activities) CompareProviders(ctx context.Context, in deployments.CompareInput) (engine.ProviderDiffed, error) {
	s, err := a.sessions.Hosted(ctx, in.Update, in.Base)
	if err != nil {
		return engine.ProviderDiffed{}, failure.Of(err)
	}
	defer heartbeat.Start(ctx, a.Heart).Stop()
	return s.Plans().Compare(ctx, in.Compare)
}
