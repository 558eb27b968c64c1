package step

import (
	"context"
	"strings"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// overtime is how long after the step's deadline Settle still waits for the answer to its call.
const overtime = time.Minute

// settlePatience is how long an update that only settles tries to reach a provider: others wait for the stack, and the
// provider may be one that only the client of the earlier update can reach.
const settlePatience = 2 * time.Minute

func (at *attempt) settle(ctx context.Context, asked engine.Settle, here bool) (engine.StepFinished, error) {
	if asked.After == nil {
		if known, err := at.remembered(ctx, here); err != nil || known.Outcome != engine.OutcomeUnknown {
			return known, err
		}
	} else if over, err := at.awaitLostCall(ctx); err != nil || !over {
		return undecidableNoAnswer, err
	}
	if at.step.Preview || at.step.Provider == nil || token.IsProvider(at.step.Type) {
		return absent, nil // such a step has no effect on a provider
	}
	p, err := at.session.providers.Of(ctx, at.step.Provider)
	if err != nil {
		return at.settleFailed(err)
	}
	switch at.step.Kind {
	case engine.StepCreate, engine.StepCreateReplacement:
		if found, ok, err := at.settleMade(ctx, p); err != nil || ok {
			return found, err
		}
		return at.settleCreate(ctx, p, asked)
	case engine.StepUpdate:
		return at.settleUpdate(ctx, p)
	case engine.StepDelete, engine.StepDeleteReplaced:
		found, err := at.settleDelete(ctx, p)
		if asked.After != nil && found.Outcome == engine.OutcomeUndecidable { // the next update deletes it again
			found.Outcome, found.Error = engine.OutcomeAbsent, notLookedFor+found.Error
		}
		return found, err
	default:
		return absent, nil // a read
	}
}

var (
	absent              = engine.StepFinished{Outcome: engine.OutcomeAbsent}
	undecidableNoAnswer = engine.StepFinished{Outcome: engine.OutcomeUndecidable,
		Error: "its call was not answered in its time, and may still have its effect"}
	// The reasons for which only a person can decide the outcome of a create.
	undecidableNoLookup = engine.StepFinished{Outcome: engine.OutcomeUndecidable,
		Error: "its answer was lost, and its provider does not say how to find it"}
	madeUp = engine.StepFinished{Outcome: engine.OutcomeUndecidable,
		Error: "its answer was lost, and its provider makes up another name each time that it is asked, so the one that it " +
			"was sent is not known; a name that the program gives would be"}
	undecidableForeign = engine.StepFinished{Outcome: engine.OutcomeUndecidable, Foreign: true,
		Error: "its answer was lost, and what was found under its name may belong to another owner"}
)

// settleFailed ends a Settle whose call failed: a transient error is retried, any other makes the outcome undecidable.
func (at *attempt) settleFailed(err error) (engine.StepFinished, error) {
	result, err := at.providerUnavailable(err)
	if err == nil {
		return engine.StepFinished{Outcome: engine.OutcomeUndecidable, Error: result.Error}, nil
	}
	return result, err
}

// settleCreate looks for the resource by the settle rules of its type. With a convergent provider there is no need to
// look if the create is repeated: the repeated create finds the resource.
func (at *attempt) settleCreate(
	ctx context.Context, p *pluginhost.Provider, asked engine.Settle,
) (engine.StepFinished, error) {
	switch by := at.session.rules.Declared(ctx, p, at.step.Type); {
	case by == provider.SettleByReconcile && asked.Again:
		return absent, nil
	case by == provider.SettleByReconcile:
		found, err := at.settleByLookup(ctx, p)
		switch {
		case err == nil && found.Foreign:
			return absent, nil // a repeated create refuses a resource that is not ours
		case found.Outcome == engine.OutcomeDone:
			found.InitErrors = []string{"it was found after its answer was lost; the next update makes it as declared"}
		}
		return found, err
	case by == provider.SettleByRead:
		return at.settleByLookup(ctx, p)
	}
	declared, inputs, err := at.checked(ctx, p)
	if err != nil {
		return at.settleFailed(err)
	}
	if asked.After == nil {
		if unsent, err := at.unsent(ctx, p, declared); err != nil {
			return at.settleFailed(err)
		} else if unsent {
			return absent, nil
		}
	}
	f, why, err := at.finder(ctx, p, inputs, func(r *settlerule.Rule) bool { return at.settles(r, asked) })
	switch {
	case err != nil:
		return at.settleFailed(err)
	case f == nil:
		at.session.count(at.step.Type, nil, countedNoRule)
		return noRule(at.step.Type, inputs, why), nil
	case f.Harmless():
		at.session.count(at.step.Type, f, countedRepeated)
		return absent, nil
	}
	if again, err := at.makesAgain(ctx, p, f, inputs); err != nil {
		return at.settleFailed(err)
	} else if !again {
		at.session.count(at.step.Type, f, countedAmbiguous)
		return madeUp, nil
	}
	result, err := at.settleByRule(ctx, p, asked, f, declared, inputs)
	if err == nil {
		at.session.count(at.step.Type, f, counted(result))
	}
	return result, err
}

// settles reports whether a rule can settle what is asked. A create that is harmless to repeat is not looked for if it
// is repeated: now, or by the next update. If another update had begun it, only one that runs the program, for all
// resources, repeats it.
func (at *attempt) settles(r *settlerule.Rule, asked engine.Settle) bool {
	in := &at.session.request
	all := in.Kind == engine.KindUp && len(in.Targets)+len(in.Excludes) == 0
	return !r.Repeat || asked.Again || asked.After != nil || all
}

// settleByRule looks for the resource of a create, and decides whether it is ours.
func (at *attempt) settleByRule(
	ctx context.Context, p *pluginhost.Provider, asked engine.Settle, f *lookup.Finder,
	declared, inputs resource.PropertyMap,
) (engine.StepFinished, error) {
	seeded, err := at.seeded(ctx, p, f, declared, inputs)
	if err != nil {
		return at.settleFailed(err)
	}
	look := func() (engine.StepFinished, error) {
		found, reasons, ended, err := at.look(ctx, p, f, inputs)
		if err == nil && ended != nil && at.passes(ctx, ended.Error) {
			err = failure.NotDone(ended.Error, 0)
		}
		if err != nil {
			return engine.StepFinished{}, err
		}
		if ended == nil && (found.ID == "" || found.Outputs == nil) {
			return notThere(asked.After, f), nil
		}
		ours := ended == nil && (seeded || at.marked(f, found, inputs))
		if ours && asked.After == nil {
			return at.found(ctx, found, reasons, inputs)
		}
		seen := false
		if ended == nil && !ours || ended != nil && asked.After != nil {
			if seen, err = at.sawAbsence(ctx, f); err != nil {
				return engine.StepFinished{}, err
			}
		}
		switch {
		case ended != nil:
			return unseen(asked.After, seen, ended.Error), nil
		case !ours && !seen:
			return foreign(asked.After), nil // it may have existed before the create
		case asked.After != nil:
			result, err := at.takeOver(ctx, p, found, reasons, inputs)
			if err == nil && !ours && asked.After.Class == engine.ErrorExists && len(result.InitErrors) > 0 {
				return foreign(asked.After), nil // what another owner has made meanwhile is not as declared
			}
			return result, err
		}
		return at.found(ctx, found, reasons, inputs)
	}
	if e := asked.After; e != nil && e.Class != engine.ErrorAmbiguous && e.Class != engine.ErrorExists {
		return look()
	}
	return twice(ctx, f.Pause, look)
}

// settleByLookup uses the provider's own look-up, which also reports who owns the resource that it finds.
func (at *attempt) settleByLookup(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	_, inputs, err := at.checked(ctx, p)
	if err != nil {
		return at.settleFailed(err)
	}
	return twice(ctx, settlerule.DefaultPause, func() (engine.StepFinished, error) {
		found, err := pluginhost.Await(ctx, func() (pluginhost.Found, error) {
			return p.Lookup(ctx, plugin.ReadRequest{URN: at.step.URN, Inputs: inputs, Timeout: at.step.Timeout})
		})
		switch {
		case ctx.Err() != nil:
			return engine.StepFinished{}, context.Cause(ctx)
		case err != nil:
			return at.settleFailed(err)
		case found.Ownership == provider.Owned:
			found.Outputs = properties.KeepSecrets(found.Outputs, inputs)
			return at.found(ctx, plugin.ReadResponse{ReadResult: found.ReadResult}, nil, inputs)
		case found.Ownership == provider.Absent:
			return absent, nil
		case found.Ownership == provider.Unowned:
			return undecidableForeign, nil
		}
		return undecidableNoLookup, nil
	})
}

// twice looks a second time, after a pause, before it reports an absence: many clouds are eventually consistent.
func twice(
	ctx context.Context, between time.Duration, look func() (engine.StepFinished, error),
) (engine.StepFinished, error) {
	result, err := look()
	if err != nil || result.Outcome != engine.OutcomeAbsent {
		return result, err
	}
	if err := failure.Pause(ctx, between); err != nil {
		return engine.StepFinished{}, err
	}
	return look()
}

// checked returns the inputs of a create as the program declared them and as they were sent.
func (at *attempt) checked(
	ctx context.Context, p *pluginhost.Provider,
) (declared, inputs resource.PropertyMap, err error) {
	if declared, err = at.session.values.Decode(ctx, at.step.New.Inputs); err != nil {
		return nil, nil, failure.Internal(err)
	}
	if err = at.readMark(ctx); err != nil {
		return nil, nil, failure.Internal(err)
	}
	if !at.step.Check {
		return declared, declared, nil
	}
	resp, err := at.checkWith(ctx, p, at.notedMark(declared), at.step.Seed)
	return declared, resp.Properties, err
}

// found returns the result of a step whose effect exists.
func (at *attempt) found(
	ctx context.Context, r plugin.ReadResponse, reasons []string, inputs resource.PropertyMap,
) (engine.StepFinished, error) {
	result := engine.StepFinished{
		Outcome: engine.OutcomeDone, ID: string(r.ID), InitErrors: reasons, RefreshBeforeUpdate: r.RefreshBeforeUpdate,
	}
	switch {
	case len(reasons) > 0 && at.step.Await: // nobody has failed: what is not finished is gone on with
		result.Awaited = &engine.Awaited{For: "its update: " + strings.Join(reasons, "; "), After: 1}
	case len(reasons) > 0:
		result.Outcome = engine.OutcomePartial
	}
	if at.step.Check {
		bag, err := at.keep(ctx, inputs)
		if err != nil {
			return result, err
		}
		result.Inputs = &bag
	}
	return at.finish(ctx, result, r.Outputs, inputs)
}

// settleUpdate compares the real resource with the inputs of the update.
func (at *attempt) settleUpdate(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	if at.session.rules.Reconciled(ctx, p, at.step.Type) {
		return absent, nil
	}
	oldInputs, oldOutputs, err := at.olds(ctx)
	if err != nil {
		return engine.StepFinished{}, err
	}
	news, err := at.session.values.Decode(ctx, at.step.New.Inputs)
	if err != nil {
		return engine.StepFinished{}, err
	}
	found, reasons, ended, err := at.ask(ctx, p, at.step.Old.ID, oldInputs, oldOutputs)
	switch {
	case err != nil:
		return engine.StepFinished{}, err
	case ended != nil:
		return engine.StepFinished{Outcome: engine.OutcomeUndecidable, Error: ended.Error}, nil
	case found.ID == "" || found.Outputs == nil:
		return absent, nil // the repeated update fails with the provider's own error
	}
	inputs := oldInputs
	if found.Inputs != nil {
		inputs = found.Inputs
	}
	d, err := compare.Resource{
		URN: at.step.URN, ID: string(found.ID), OldInputs: inputs, OldOutputs: found.Outputs, NewInputs: news,
		IgnoreChanges: at.step.New.IgnoreChanges,
	}.Diff(ctx, p)
	switch {
	case err != nil && !compare.Unavailable(err):
		return at.settleFailed(err)
	case err != nil || d.Changes == plugin.DiffSome:
		return absent, nil
	}
	found.Outputs = properties.KeepSecrets(found.Outputs, news)
	return at.found(ctx, found, reasons, news)
}

// settleDelete checks whether the resource still exists.
func (at *attempt) settleDelete(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	if at.session.rules.Reconciled(ctx, p, at.step.Type) {
		return absent, nil
	}
	inputs, outputs, err := at.olds(ctx)
	if err != nil {
		return engine.StepFinished{}, err
	}
	found, _, ended, err := at.ask(ctx, p, at.step.Old.ID, inputs, outputs)
	switch {
	case err != nil:
		return engine.StepFinished{}, err
	case ended != nil:
		return engine.StepFinished{Outcome: engine.OutcomeUndecidable, Error: ended.Error}, nil
	case found.ID == "" || found.Outputs == nil:
		return at.finish(ctx, engine.StepFinished{Outcome: engine.OutcomeDone}, nil, nil)
	}
	return absent, nil
}
