// Package plan makes the plans of an update: what its providers and policy packs say of a resource that a program
// declares, of a new configuration of a provider, and of what is replaced with something else. It changes nothing.
package plan

import (
	"context"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/autonaming"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/host/policies"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/sdk/temporal"
)

// Plans make the plans of an update. They are safe for concurrent use.
type Plans struct {
	stackID   string
	request   deployments.UpdateRequest
	values    *bags.Codec
	names     *autonaming.Rules
	providers *hosted.Providers
	host      hosted.Host
	facts     *hosted.Update
	rules     *lookup.Rules
	compared  *compare.Cache
	packs     *policies.Packs
	look      Look
}

// Look looks for a resource that the stack does not have, with the inputs that its provider has checked.
type Look func(
	ctx context.Context, p *pluginhost.Provider, ask engine.Plan, checked resource.PropertyMap,
) (*engine.Found, error)

// Options are what the plans of an update need.
type Options struct {
	Update   *hosted.Update
	Rules    *lookup.Rules
	Compared *compare.Cache
	Packs    *policies.Packs
	Look     Look
}

// New returns the plans of an update.
func New(o Options) *Plans {
	u := o.Update
	return &Plans{
		stackID: u.StackID, request: u.Request, values: u.Values, names: u.Names, providers: u.Providers, host: u.Host,
		facts: u, rules: o.Rules, compared: o.Compared, packs: o.Packs, look: o.Look,
	}
}

// All makes the plans of a list of resources. A provider's error or check failure is part of the result of its
// resource.
func (s *Plans) All(
	ctx context.Context, beats *heartbeat.Beats, in deployments.PlanInput,
) (deployments.PlanOutput, error) {
	ctx, cancel := beats.UntilCancelled(ctx)
	defer cancel()

	results := make([]engine.Planned, len(in.Plans))
	errs := make([]error, len(in.Plans))
	var planning sync.WaitGroup
	slots := make(chan struct{}, Parallel)
	for i, p := range in.Plans {
		slots <- struct{}{}
		planning.Go(func() {
			defer func() { <-slots }()
			results[i], errs[i] = s.One(ctx, p)
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
