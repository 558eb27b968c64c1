package step

import (
	"context"
	"math"
	"regexp"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// forbidden is in the errors of providers that were not allowed to look. Such an error is never taken for absence.
var forbidden = regexp.MustCompile(`(?i)\b403\b|access ?denied|forbidden|permission ?denied|not authorized|unauthorized` +
	`|AuthorizationFailed`)

// lookError says that a resource could not be looked for, and may exist.
type lookError struct{ text string }

func (e *lookError) Error() string {
	remedy := "update again"
	if forbidden.MatchString(e.text) {
		remedy = "allow to read it"
	}
	return "it could not be looked for before it is created, so it may exist already: " + e.text + "; " + remedy +
		", or set " + stackkeys.Look + " to false"
}

// lookFirst looks for what the create would make with these inputs, and what creates of other generations would have
// made. It is for the first attempts: once a call was made, what is found may be what it has made.
func (at *attempt) lookFirst(
	ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap,
) (*engine.Found, error) {
	look := at.step.Look
	if _, called := at.session.called.Load(at.step.Op); look == nil || called || at.round > 1 {
		return nil, nil
	}
	var foreign *engine.Found
	seen := []resource.PropertyMap{}
	for n, seed := range look.Seeds {
		tried, own := at, slices.Equal(seed, at.step.Seed)
		with := inputs
		if !own {
			tried = at.under(seed)
			var ended *engine.StepFinished
			var err error
			if with, _, ended, err = tried.inputs(ctx, p); err != nil || ended != nil {
				return nil, err // the create says it
			}
		}
		if with.ContainsUnknowns() {
			continue
		}
		if slices.ContainsFunc(seen, with.DeepEquals) {
			break // they do not depend on the seed
		}
		seen = append(seen, with)
		found, err := tried.exists(ctx, p, with)
		if own || with.DeepEquals(inputs) {
			at.unfound = tried.unfound
		}
		switch {
		case err != nil:
			return nil, err
		case found == nil:
		case !found.Foreign:
			found.Generation = look.First - n
			return found, nil
		case own || len(look.Seeds) > 1 && with.DeepEquals(inputs):
			foreign = found
		}
	}
	return foreign, nil
}

// under returns the attempt at a create of another generation, of which nothing is noted.
func (at *attempt) under(seed []byte) *attempt {
	step := at.step
	step.Seed, step.Check, step.Since = seed, true, 0
	return &attempt{session: at.session, heartbeat: at.heartbeat, limiter: at.limiter, step: step}
}

// createInputs returns the inputs with which what was found is read: those that a create would have, since some
// providers find out what an id is by them. Without them, an import goes by the id alone.
func (at *attempt) createInputs(
	ctx context.Context, p *pluginhost.Provider,
) (inputs resource.PropertyMap, ended *engine.StepFinished, err error) {
	if !at.step.Found {
		return nil, nil, nil
	}
	made := at.under(at.step.Seed)
	made.step.Kind = engine.StepCreate
	inputs, _, ended, err = made.inputs(ctx, p)
	return inputs, ended, err
}

// exists looks for what a create with these inputs would make: by its provider, or by the settle rule of its type. A
// person who has things taken over may have lost the state since they were made, and changed what the id follows from:
// then the other rules of the type are used, too, until one finds something.
func (at *attempt) exists(
	ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap,
) (*engine.Found, error) {
	if at.session.rules.Declared(ctx, p, at.step.Type) != "" {
		return at.existsByProvider(ctx, p, inputs)
	}
	most := 1
	if at.step.Look != nil && at.step.Look.TakeOver {
		most = math.MaxInt
	}
	rules, why, err := at.finders(ctx, p, inputs, most, lookup.AnyRule)
	if err != nil || len(rules) == 0 {
		at.unfound = lookup.NotRuled(at.step.Type, inputs, why)
		return nil, err
	}
	for _, f := range rules {
		if found, err := at.existsBy(ctx, p, f, inputs); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// existsBy is exists by one rule.
func (at *attempt) existsBy(
	ctx context.Context, p *pluginhost.Provider, f *lookup.Finder, inputs resource.PropertyMap,
) (*engine.Found, error) {
	if f.Harmless() {
		at.unfound = "there is nothing outside of the state to be found: " + f.Kind() + " (" + f.From + ")"
		return nil, nil
	}
	declared, err := at.session.values.Decode(ctx, at.step.New.Inputs)
	if err != nil {
		return nil, failure.Internal(err)
	}
	seeded, err := at.seeded(ctx, p, f, declared, inputs)
	if err != nil {
		_, err := at.providerUnavailable(err)
		return nil, err
	}
	provable := seeded || at.markIn(f.Place, inputs) != "" && f.Accepts(settlerule.ByMark)
	if !provable && f.Read.IsZero() { // what has such properties need not be what the create would make
		at.unfound = "nothing would show that what is found " + f.String() + " is the stack's"
		return nil, nil
	}
	found, _, ended, err := at.look(ctx, p, f, inputs)
	switch {
	case err != nil:
		return nil, err
	case ended != nil && at.passes(ctx, ended.Error):
		return nil, failure.NotDone(ended.Error, 0)
	case ended != nil && (ended.Outcome == engine.OutcomeUndecidable || forbidden.MatchString(ended.Error) ||
		at.mayPass(ended.Error)):
		return nil, &lookError{ended.Error}
	case ended != nil:
		at.unfound = "it could not be looked for " + f.String() + ": " + ended.Error
		return nil, nil
	case isMissing(found), found.ID == "":
		at.unfound, at.absent = "it was looked for "+f.String()+", and is not there", f.Digest()
		return nil, nil
	}
	at.realID = string(found.ID)
	if seeded || at.marked(f, found, inputs) {
		return &engine.Found{ID: at.askedBy}, nil
	}
	return at.unproven(ctx, at.askedBy)
}

// unproven decides about what bears the name that a create would use, without anything that shows whose it is. It may
// be meant to be there: a preview that writes a file for an import, a setting that exists from the start. So it is left
// to the create, unless a person takes it over.
func (at *attempt) unproven(ctx context.Context, id string) (*engine.Found, error) {
	hide := at.session.redactor(ctx, failure.BagsOf(at.step.Provider, at.step.New)...)
	if at.step.Look == nil || !at.step.Look.TakeOver {
		at.session.tell(diag.Warning, at.step.URN, "something exists under its name, and nothing shows that it is this "+
			"stack's: "+hide(id)+"; the create may fail, or change it; import it, or take it over with --adopt")
		return nil, nil
	}
	known, err := at.session.stateOfSurvey(ctx)
	if err != nil {
		return nil, err
	}
	for _, has := range slices.Concat(known.with(at.step.Type, id), known.with(at.step.Type, at.realID)) {
		u := has.urn
		if u.Type() == at.step.Type && u != at.step.URN && has.provider == at.step.Provider.Ref { // the same account
			at.session.tell(diag.Warning, at.step.URN, "what exists under its name, "+hide(id)+", is "+engine.NameOf(u)+
				" of this stack, and is not taken over; if it was renamed in the program, give it the alias "+string(u))
			return nil, nil
		}
	}
	return &engine.Found{ID: id, Foreign: true}, nil
}

// existsByProvider asks a provider that knows what is its own. If it cannot say, its create finds out.
func (at *attempt) existsByProvider(
	ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap,
) (*engine.Found, error) {
	if err := at.keepRate(ctx); err != nil {
		return nil, err
	}
	found, err := pluginhost.Await(ctx, func() (pluginhost.Found, error) {
		return p.Lookup(ctx, plugin.ReadRequest{URN: at.step.URN, Inputs: inputs, Timeout: at.step.Timeout})
	})
	at.observe(err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && forbidden.MatchString(pluginhost.ErrorText(err)):
		return nil, &lookError{pluginhost.ErrorText(err)}
	case err != nil:
		result, err := at.providerUnavailable(err)
		at.unfound = "its provider could not look for it: " + result.Error
		return nil, err
	case found.ID == "":
		at.unfound = "its provider has looked for it, and it is not there"
		return nil, nil
	case found.Ownership == provider.Owned:
		return &engine.Found{ID: string(found.ID)}, nil
	case found.Ownership == provider.Unowned:
		return &engine.Found{ID: string(found.ID), Foreign: true, Owner: found.Owner}, nil
	}
	at.unfound = "its provider cannot tell whether it exists"
	return nil, nil
}

// LookFor looks for the resource of a plan that the stack does not have, with the inputs that were checked.
func (s *Steps) LookFor(
	ctx context.Context, p *pluginhost.Provider, ask engine.Plan, checked resource.PropertyMap,
) (*engine.Found, error) {
	surveys := s.request.Survey && ask.Preview
	if ask.Look == nil && !surveys {
		return nil, nil
	}
	account, err := s.providers.Account(ctx, ask.Provider)
	if err != nil {
		return nil, err
	}
	at := &attempt{session: s, limiter: account.Limiter, step: engine.Step{
		Op: ask.Op, Kind: engine.StepCreate, URN: ask.URN, Type: ask.Goal.Type, Provider: ask.Provider, Seed: ask.Seed,
		Check: true, Preview: ask.Preview, Look: ask.Look,
		New: &engine.State{URN: ask.URN, Type: ask.Goal.Type, Inputs: ask.Goal.Inputs},
	}}
	defer func() {
		if at.views != nil {
			at.views.Close()
		}
	}()
	if surveys {
		if err := at.survey(ctx, p, checked); err != nil {
			return nil, err
		}
	}
	found, err := at.lookFirst(ctx, p, checked)
	if surveys && err == nil && found == nil && ask.Old == nil {
		at.notFound(ctx, ask, checked)
	}
	return found, err
}

// notFound tells why what would be created was not found.
func (at *attempt) notFound(ctx context.Context, ask engine.Plan, checked resource.PropertyMap) {
	why := at.unfound
	switch {
	case !at.session.own.Look:
		why = "it was not looked for (" + stackkeys.Look + ")"
	case ask.Look == nil:
		why = "an earlier update has begun to create it, and the next one settles that"
	case checked.ContainsUnknowns():
		why = "its inputs are known only after other resources are made"
	}
	hide := at.session.redactor(ctx, failure.BagsOf(ask.Provider, at.step.New)...)
	at.session.tell(diag.Info, ask.URN, deployments.Finding{Kind: deployments.NotFound,
		Type: string(ask.Goal.Type), Why: hide(why)}.String())
}
