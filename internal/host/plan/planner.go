package plan

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

const (
	// Parallel bounds the plans of one call that are made at the same time.
	Parallel = 32
)

// One plans one resource, without secrets in its texts. A panic ends this plan only.
func (s *Plans) One(ctx context.Context, p engine.Plan) (planned engine.Planned, err error) {
	ctx, release := intake.WithHold(ctx)
	defer release()
	err = panics.Do("planning "+string(p.URN), func() (err error) {
		planned, err = s.planOne(ctx, p)
		return err
	})
	seen := append(failure.BagsOf(p.Provider, p.Old), p.Goal.Inputs)
	for _, b := range p.Goal.Bound {
		seen = append(seen, b.Bag)
	}
	hide := s.host.Redactor(ctx, seen...)
	hide.Plan(ctx, &planned)
	return planned, hide.Failure(err)
}

// planOne plans one resource. It returns errors of the service; a provider's error is part of the result.
func (s *Plans) planOne(ctx context.Context, p engine.Plan) (engine.Planned, error) {
	planner, err := s.newPlanner(ctx, p)
	if err != nil {
		return engine.Planned{}, err
	}
	var planned engine.Planned
	err = hosted.Retried(ctx, func() error {
		var err error
		if planner.provider, err = s.planningProvider(ctx, p); err != nil {
			return err
		}
		planned, err = planner.plan(ctx)
		return err
	})
	planned.Op = p.Op
	if own, internal := failure.OfService(err); internal {
		return planned, own
	}
	if err != nil {
		return engine.Planned{Op: p.Op, Error: pluginhost.ErrorText(err)}, nil
	}
	return planned, nil
}

// planner plans one resource with a provider.
type planner struct {
	session  *Plans
	ask      engine.Plan
	provider compare.Provider
	// The values of the goal and, unless it is a recreation, of the stored resource.
	news, oldInputs, oldOutputs resource.PropertyMap
	bound                       []boundInputs // of its bindings
	continues                   bool          // the goal is compared with a stored resource
}

func (s *Plans) newPlanner(ctx context.Context, p engine.Plan) (*planner, error) {
	pl := &planner{session: s, ask: p, continues: p.Old != nil && !p.Recreate && !p.Old.External}
	var err error
	for _, b := range p.Goal.Bound {
		values, err := s.values.Decode(ctx, b.Bag)
		if err != nil {
			return nil, err
		}
		pl.bound = append(pl.bound, boundInputs{values, b.Registered})
	}
	if pl.news, err = s.values.Decode(ctx, p.Goal.Inputs); err != nil || !pl.continues {
		return pl, err
	}
	if pl.oldInputs, err = s.values.Decode(ctx, p.Old.Inputs); err != nil {
		return nil, err
	}
	pl.oldOutputs, err = s.values.Decode(ctx, p.Old.Outputs)
	return pl, err
}

// planningProvider returns the provider that plans a resource.
func (s *Plans) planningProvider(ctx context.Context, p engine.Plan) (compare.Provider, error) {
	switch {
	case !p.Goal.Custom: // a component has none
		return nil, nil
	case token.IsProvider(p.URN.Type()):
		return compare.Configurator(s.facts), nil
	}
	return s.providers.Of(ctx, p.Provider)
}

func (pl *planner) plan(ctx context.Context) (engine.Planned, error) {
	if !pl.ask.Goal.Custom {
		return pl.planComponent(ctx)
	}
	news, conflicts := withBound(pl.news, pl.bound)
	if len(conflicts) > 0 {
		return engine.Planned{Failures: conflicts}, nil
	}
	pl.news, pl.bound = news, nil // it may be tried again
	inputs := pl.news
	if pl.continues {
		var skipped []string
		if inputs, skipped = properties.IgnoreChanges(pl.news, pl.oldInputs,
			pl.ask.Goal.IgnoreChanges); len(skipped) > 0 {
			pl.session.host.Tell(diag.Info, pl.ask.URN,
				fmt.Sprintf("cannot ignore changes in added or removed elements of the path: %q",
					strings.Join(skipped, ", ")))
		}
	}
	checked, failures, err := pl.check(ctx, inputs, pl.oldInputs)
	if err != nil || len(failures) > 0 {
		return engine.Planned{Failures: failures}, err
	}
	checked, analysis, err := pl.analyze(ctx, checked)
	if err != nil {
		return engine.Planned{}, err
	}
	var diff engine.Diff
	if pl.continues {
		if diff, err = pl.compare(ctx, checked); err != nil {
			return engine.Planned{}, err
		}
	}
	replaces := pl.continues && (diff.Change == engine.ChangeReplace || pl.ask.Old.PendingReplacement)
	if replaces { // check again without the old inputs: their generated defaults are not for the replacement
		if checked, failures, err = pl.check(ctx, pl.news, nil); err != nil || len(failures) > 0 {
			return engine.Planned{Failures: failures, Diff: diff}, err
		}
		if checked, analysis, err = pl.analyze(ctx, checked); err != nil {
			return engine.Planned{}, err
		}
	}
	planned := engine.Planned{Diff: diff, Analysis: analysis}
	if planned.Found, err = pl.look(ctx, checked); err != nil || planned.Found != nil {
		return planned, err
	}
	if planned.Inputs, err = pl.session.values.Encode(ctx, checked); err != nil {
		return planned, failure.Internal(err)
	}
	if pl.continues && diff.Change == engine.ChangeNone {
		if planned.Inputs.Same(pl.ask.Old.Inputs) {
			p := pl.ask
			pl.session.compared.Note(
				compare.StoredKey(pl.session.stackID, p.Provider, pl.provider, p.Old, p.Goal.IgnoreChanges), diff)
		}
		planned.Outputs, err = pl.protect(ctx, checked)
	}
	if err == nil && pl.ask.Preview {
		err = pl.preview(ctx, checked, replaces, &planned)
	}
	return planned, err
}

// planComponent plans a component, which only policy packs look at.
func (pl *planner) planComponent(ctx context.Context) (planned engine.Planned, err error) {
	inputs, analysis, err := pl.analyze(ctx, pl.news)
	if err != nil {
		return planned, err
	}
	planned.Analysis, planned.Inputs = analysis, pl.ask.Goal.Inputs
	if analysis != nil && len(analysis.Remediations) > 0 {
		planned.Inputs, err = pl.session.values.Encode(ctx, inputs)
	}
	return planned, failure.Internal(err)
}

// analyze asks the policy packs, if there are any, about the checked inputs, and returns those with the remediations.
func (pl *planner) analyze(
	ctx context.Context, checked resource.PropertyMap,
) (resource.PropertyMap, *engine.Analysis, error) {
	if !pl.ask.Analyze {
		return checked, nil, nil
	}
	return pl.session.packs.Analyze(ctx, pl.ask, checked)
}

// protect returns the stored outputs with what has to be secret now: the program may list more outputs than before, or
// have made an input secret. It returns nil if nothing becomes secret.
func (pl *planner) protect(ctx context.Context, checked resource.PropertyMap) (*engine.Bag, error) {
	outputs := maps.Clone(pl.oldOutputs)
	properties.ProtectOutputs(outputs, checked, pl.ask.Goal.AdditionalSecretOutputs)
	for key, v := range outputs {
		if v.IsSecret() && !pl.oldOutputs[key].IsSecret() {
			bag, err := pl.session.values.Encode(ctx, outputs)
			if err != nil {
				return nil, failure.Internal(err)
			}
			return &bag, nil
		}
	}
	return nil, nil
}

func (pl *planner) check(
	ctx context.Context, news, olds resource.PropertyMap,
) (resource.PropertyMap, []engine.CheckFailure, error) {
	u := pl.ask.URN
	news = pl.session.rules.WithMark(ctx, pl.provider, pl.ask.Provider, u.Type(), pl.ask.Seed, news, olds)
	resp, err := pl.provider.Check(ctx, plugin.CheckRequest{
		URN: u, Name: u.Name(), Type: u.Type(), Olds: olds, News: news,
		AllowUnknowns: pl.ask.Preview, RandomSeed: pl.ask.Seed, Autonaming: pl.session.names.Propose(u, pl.ask.Seed),
	})
	return resp.Properties, compare.FailuresOf(resp.Failures), err
}

// compare returns the change of the stored resource that the goal needs: none, update or replace.
func (pl *planner) compare(ctx context.Context, checked resource.PropertyMap) (engine.Diff, error) {
	p := pl.ask
	d, err := compare.Resource{
		URN: p.URN, ID: p.Old.ID, OldInputs: pl.oldInputs, OldOutputs: pl.oldOutputs, NewInputs: checked,
		IgnoreChanges: p.Goal.IgnoreChanges, Unknowns: p.Preview,
	}.Diff(ctx, pl.provider)
	if compare.Unavailable(err) {
		pl.session.host.Tell(diag.Warning, p.URN, err.Error())
		d, err = plugin.DiffResult{Changes: plugin.DiffSome}, nil
	}
	if err != nil {
		return engine.Diff{}, err
	}
	initFailed := len(p.Old.InitErrors) > 0
	if d, err = compare.ReplaceOnChanges(d, p.Goal.ReplaceOnChanges, initFailed); err != nil {
		return engine.Diff{}, err
	}
	if initFailed && d.Changes != plugin.DiffSome { // an update repairs a failed initialisation
		d.Changes = plugin.DiffSome
		d.ChangedKeys = append(d.ChangedKeys, compare.InitErrorKey)
	}
	if d.Changes != plugin.DiffSome && pl.forced(ctx) {
		d.Changes = plugin.DiffSome
	}
	return compare.DiffOf(d), nil
}

// forced reports whether a resource is to be reconciled though nothing has changed.
func (pl *planner) forced(ctx context.Context) bool {
	p, ok := pl.provider.(*pluginhost.Provider)
	return ok && pl.session.request.Force && pl.session.rules.Reconciled(ctx, p, pl.ask.URN.Type())
}

// preview computes the outputs that the resource would have, and the steps of its views.
func (pl *planner) preview(
	ctx context.Context, checked resource.PropertyMap, replaces bool, planned *engine.Planned,
) error {
	if pl.continues && !replaces && planned.Diff.Change != engine.ChangeUpdate {
		return nil
	}
	p := pl.ask
	views := pl.session.host.OpenViews(true)
	defer views.Close()
	var outputs resource.PropertyMap
	if !pl.continues || replaces {
		resp, err := pl.provider.Create(ctx, plugin.CreateRequest{
			URN: p.URN, Name: p.URN.Name(), Type: p.URN.Type(), Properties: checked, Preview: true,
			ResourceStatusAddress: views.Address, ResourceStatusToken: views.Token,
		})
		if err != nil {
			return err
		}
		outputs, planned.PreviewID = resp.Properties, string(resp.ID)
	} else {
		oldViews, err := compare.PluginViews(ctx, pl.session.values, p.Views)
		if err != nil {
			return err
		}
		resp, err := pl.provider.Update(ctx, plugin.UpdateRequest{
			URN: p.URN, Name: p.URN.Name(), Type: p.URN.Type(), ID: resource.ID(p.Old.ID),
			OldInputs: pl.oldInputs, OldOutputs: pl.oldOutputs, NewInputs: checked, OldViews: oldViews,
			IgnoreChanges: p.Goal.IgnoreChanges, Preview: true,
			ResourceStatusAddress: views.Address, ResourceStatusToken: views.Token,
		})
		if err != nil {
			return err
		}
		outputs, planned.PreviewID = resp.Properties, p.Old.ID
	}
	outputs = properties.WithoutOutputs(outputs)
	properties.ProtectOutputs(outputs, checked, p.Goal.AdditionalSecretOutputs)
	var err error
	if planned.Preview, err = pl.session.values.Encode(ctx, outputs); err != nil {
		return failure.Internal(err)
	}
	encode := func(values resource.PropertyMap, inline int) (engine.Bag, error) {
		return pl.session.values.EncodeWithin(ctx, values, inline)
	}
	planned.Views, err = compare.ViewSteps(views.Close(), encode)
	return failure.Internal(err)
}

// look looks for a resource that the stack does not have, with the inputs that were checked.
func (pl *planner) look(ctx context.Context, checked resource.PropertyMap) (*engine.Found, error) {
	p, ok := pl.provider.(*pluginhost.Provider)
	if !ok {
		return nil, nil
	}
	return pl.session.look(ctx, p, pl.ask, checked)
}
