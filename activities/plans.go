package activities

import (
	"context"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/autonaming"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/sdk/temporal"
)

// plans make the plans of an update. They are safe for concurrent use.
type plans struct {
	stackID   string
	request   deployments.UpdateRequest
	values    *bags.Codec
	names     *autonaming.Rules
	providers *providerSet
	host      updateHost
	facts     *updateFacts
	rules     *ruleBook
	compared  *comparisons
	packs     *policyPacks
	look      lookFunc
}

// lookFunc looks for a resource that the stack does not have, with the inputs that its provider has checked.
type lookFunc func(
	ctx context.Context, p *pluginhost.Provider, ask engine.Plan, checked resource.PropertyMap,
) (*engine.Found, error)

// planOptions are what the plans of an update need.
type planOptions struct {
	Update   *updateFacts
	Rules    *ruleBook
	Compared *comparisons
	Packs    *policyPacks
	Look     lookFunc
}

// newPlans returns the plans of an update.
func newPlans(o planOptions) *plans {
	u := o.Update
	return &plans{
		stackID: u.stackID, request: u.request, values: u.values, names: u.names, providers: u.providers, host: u.host,
		facts: u, rules: o.Rules, compared: o.Compared, packs: o.Packs, look: o.Look,
	}
}

// planAll makes the plans of a list of resources. A provider's error or check failure is part of the result of its
// resource.
func (s *plans) planAll(ctx context.Context, beats *heartbeat.Beats, in deployments.PlanInput) (deployments.PlanOutput, error) {
	ctx, cancel := beats.UntilCancelled(ctx)
	defer cancel()

	results := make([]engine.Planned, len(in.Plans))
	errs := make([]error, len(in.Plans))
	var planning sync.WaitGroup
	slots := make(chan struct{}, planParallel)
	for i, p := range in.Plans {
		slots <- struct{}{}
		planning.Go(func() {
			defer func() { <-slots }()
			results[i], errs[i] = s.plan(ctx, p)
		})
	}
	planning.Wait()
	if beats.WasCancelled() { // by force, while policy packs were asked
		return deployments.PlanOutput{}, temporal.NewCanceledError()
	}
	if ctx.Err() != nil { // the providers' errors are caused by the end of the context
		return deployments.PlanOutput{}, ctx.Err()
	}
	for _, err := range errs {
		if err != nil {
			return deployments.PlanOutput{}, err
		}
	}
	out := deployments.PlanOutput{Plans: results}
	for i, p := range in.Plans {
		if p.Answer != nil && same(results[i]) { // at most one plan has an Answer: no earlier registration may be in flight
			reply := *p.Answer
			reply.Stables = results[i].Diff.StableKeys
			results[i].Answered, out.Messages = s.host.ReplyEarly(ctx, reply)
		}
	}
	return out, nil
}

// same reports whether a plan is without error and changes nothing.
func same(p engine.Planned) bool {
	return p.Error == "" && len(p.Failures) == 0 && p.Diff.Change == engine.ChangeNone && p.Outputs == nil &&
		p.Analysis.Mandatory() == nil
}
