package step

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"go.temporal.io/sdk/activity"
)

// create creates the resource. It checks the inputs first if the plan did not.
func (at *attempt) create(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	if at.step.Adopt {
		return at.adoptNamed(ctx, p)
	}
	u := at.step.URN
	inputs, checked, ended, err := at.inputs(ctx, p)
	if err != nil || ended != nil {
		return deref(ended), err
	}
	if !at.step.Preview { // not between the look and the call
		if err := at.keepRate(ctx); err != nil {
			return engine.StepFinished{}, err
		}
		at.admitted = true
	}
	found, err := at.lookFirst(ctx, p, inputs)
	if denied := (*lookError)(nil); errors.As(err, &denied) {
		return failed(denied.Error()), nil
	}
	if err != nil || found != nil {
		return engine.StepFinished{Outcome: engine.OutcomeDone, Found: found}, err
	}
	if made, err := at.lookBefore(ctx, p, inputs); err != nil || made != nil {
		return deref(made), err
	}
	if err := at.noteMark(ctx, inputs); err != nil {
		return engine.StepFinished{}, err
	}
	views := at.openViews()
	return mutate(ctx, at, p, func(ctx context.Context) (plugin.CreateResponse, error) {
		return p.Create(ctx, plugin.CreateRequest{
			URN: u, Name: u.Name(), Type: u.Type(), Properties: inputs, Timeout: at.step.Timeout,
			Preview: at.step.Preview, ResourceStatusAddress: views.Address, ResourceStatusToken: views.Token,
		})
	}, func(resp plugin.CreateResponse, err error) (engine.StepFinished, error) {
		result, reasons, err := at.judge(ctx, p, err)
		result.Inputs = checked
		if err != nil || !hadEffect(result) {
			return result, err
		}
		result.ID, result.InitErrors, result.RefreshBeforeUpdate = string(resp.ID), reasons, resp.RefreshBeforeUpdate
		return at.finish(ctx, result, resp.Properties, inputs)
	})
}

// adoptNamed reads the resource that a person named for an undecidable create, instead of creating it. It checks the
// inputs as a create does, so that the next update finds no difference; the inputs of a create that an earlier update
// began may be unchecked.
func (at *attempt) adoptNamed(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	at.step.Check = true
	inputs, _, ended, err := at.inputs(ctx, p)
	if err != nil || ended != nil {
		return deref(ended), err
	}
	found, reasons, ended, err := at.ask(ctx, p, at.step.New.ID, inputs, nil)
	switch {
	case err != nil || ended != nil:
		return deref(ended), err
	case found.ID == "" || found.Outputs == nil:
		return failed(fmt.Sprintf("resource '%s' does not exist", at.step.New.ID)), nil
	}
	return at.found(ctx, found, reasons, inputs)
}

// inputs returns the inputs to create with. If the step asks for it, they are checked first: checked is then their bag,
// and ended is the result of a step whose check failed.
func (at *attempt) inputs(
	ctx context.Context, p compare.Provider,
) (inputs resource.PropertyMap, checked *engine.Bag, ended *engine.StepFinished, err error) {
	if inputs, err = at.session.values.Decode(ctx, at.step.New.Inputs); err != nil {
		return nil, nil, nil, err
	}
	if inputs, err = at.beginMark(ctx, p, inputs); err != nil || !at.step.Check {
		return inputs, nil, nil, err
	}
	u := at.step.URN
	resp, err := p.Check(ctx, plugin.CheckRequest{
		URN: u, Name: u.Name(), Type: u.Type(), News: inputs, AllowUnknowns: at.step.Preview, RandomSeed: at.step.Seed,
		Autonaming: at.session.names.Propose(u, at.step.Seed),
	})
	if err != nil {
		result, err := at.providerUnavailable(err)
		return nil, nil, &result, err
	}
	if len(resp.Failures) > 0 {
		return nil, nil, &engine.StepFinished{Outcome: engine.OutcomeFailed, Failures: compare.FailuresOf(resp.Failures)},
			nil
	}
	bag, err := at.session.values.Encode(ctx, resp.Properties)
	return resp.Properties, &bag, nil, err
}

// lookBefore chooses the rule by which the resource is found if the answer is lost. If nothing else shows that what is
// found then is ours, it records, once per create, that no such resource exists before the call. Every later attempt
// looks: one before it may have ended before it looked, or have made the resource before its provider rejected what
// came after. What an attempt before it has made is taken over.
func (at *attempt) lookBefore(
	ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap,
) (made *engine.StepFinished, err error) {
	if at.step.Preview || at.session.rules.Declared(ctx, p, at.step.Type) != "" {
		return nil, nil
	}
	if at.rule, at.noRule, err = at.finder(ctx, p, inputs, lookup.AnyRule); err != nil {
		return nil, err
	}
	f := at.rule
	if f == nil || f.Harmless() {
		return nil, nil
	}
	declared, err := at.session.values.Decode(ctx, at.step.New.Inputs)
	if err != nil {
		return nil, err
	}
	ours, err := at.seeded(ctx, p, f, declared, inputs)
	if err != nil {
		result, err := at.providerUnavailable(err)
		return &result, err
	}
	provable := ours || at.markIn(f.Place, inputs) != "" && f.Accepts(settlerule.ByMark)
	if at.first(ctx) && (provable || !f.Accepts(settlerule.Absence)) {
		return nil, nil
	}
	if at.absent == f.Digest() { // lookFirst has just looked
		return nil, at.noteAbsence(ctx, f, provable)
	}
	found, reasons, ended, err := at.look(ctx, p, f, inputs)
	switch {
	case err == nil && ended != nil && at.passes(ctx, ended.Error):
		return nil, failure.NotDone(ended.Error, 0) // without the look, nothing would show whose it is
	case err != nil || ended != nil:
		return nil, err
	case found.ID == "" || found.Outputs == nil:
		return nil, at.noteAbsence(ctx, f, provable)
	}
	if !ours && !at.marked(f, found, inputs) {
		if at.first(ctx) && at.step.Since == at.session.update.Number() || at.madeMeanwhile(f) {
			return nil, nil // it is another owner's, and the create finds that out
		}
		if seen, err := at.sawAbsence(ctx, f); err != nil || !seen {
			return nil, err
		}
	}
	result, err := at.takeOver(ctx, p, found, reasons, inputs)
	return &result, err
}

// first reports whether no attempt of the create was made before this one, as far as this update knows: an earlier
// update may have made one, of which only the note of its mark tells.
func (at *attempt) first(ctx context.Context) bool {
	return at.round <= 1 && activity.GetInfo(ctx).Attempt <= 1 && at.noted.Text == ""
}

// madeMeanwhile reports whether what a rule finds now is certainly another owner's: this session has noted that it was
// not there, and has sent no call since.
func (at *attempt) madeMeanwhile(f *lookup.Finder) bool {
	noted, _ := at.session.noted.Load(at.step.Op)
	_, called := at.session.called.Load(at.step.Op)
	return at.round <= 1 && noted == f.Digest() && !called
}

// noteAbsence records that what a rule looks for did not exist before the call, if the rule accepts that as a proof and
// there is no better one. The call follows at once: what others make in between would be taken for this create's.
func (at *attempt) noteAbsence(ctx context.Context, f *lookup.Finder, provable bool) error {
	s, digest := at.session, f.Digest()
	if noted, _ := s.noted.Load(at.step.Op); provable || noted == digest || !f.Accepts(settlerule.Absence) {
		return nil
	}
	err := s.store.Creates.NoteAbsence(ctx, s.update.StackName, at.step.Seed, digest, s.update.Number())
	if err == nil {
		s.noted.Store(at.step.Op, digest)
	}
	return err
}

// sawAbsence reports whether an attempt of this create, also one of an earlier update, recorded that what a rule looks
// for did not exist before the call, and the rule accepts that as a proof. Nobody looked before the creates of other
// engines, which have no seed.
func (at *attempt) sawAbsence(ctx context.Context, f *lookup.Finder) (bool, error) {
	if len(at.step.Seed) == 0 || !f.Accepts(settlerule.Absence) {
		return false, nil
	}
	return at.session.store.Creates.SawAbsence(ctx, at.session.update.StackName, at.step.Seed, f.Digest(), at.step.Since)
}

func deref(result *engine.StepFinished) engine.StepFinished {
	if result == nil {
		return engine.StepFinished{}
	}
	return *result
}

// olds returns the stored inputs and outputs.
func (at *attempt) olds(ctx context.Context) (inputs, outputs resource.PropertyMap, err error) {
	if inputs, err = at.session.values.Decode(ctx, at.step.Old.Inputs); err != nil {
		return nil, nil, err
	}
	outputs, err = at.session.values.Decode(ctx, at.step.Old.Outputs)
	return inputs, outputs, err
}

// update updates the resource.
func (at *attempt) update(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	u := at.step.URN
	oldInputs, oldOutputs, err := at.olds(ctx)
	if err != nil {
		return engine.StepFinished{}, err
	}
	inputs, err := at.session.values.Decode(ctx, at.step.New.Inputs)
	if err != nil {
		return engine.StepFinished{}, err
	}
	oldViews, err := at.oldViews(ctx)
	if err != nil {
		return engine.StepFinished{}, err
	}
	views := at.openViews()
	return mutate(ctx, at, p, func(ctx context.Context) (plugin.UpdateResponse, error) {
		return p.Update(ctx, plugin.UpdateRequest{
			URN: u, Name: u.Name(), Type: u.Type(), ID: resource.ID(at.step.Old.ID),
			OldInputs: oldInputs, OldOutputs: oldOutputs, NewInputs: inputs, Timeout: at.step.Timeout,
			IgnoreChanges: at.step.New.IgnoreChanges, Preview: at.step.Preview, OldViews: oldViews,
			ResourceStatusAddress: views.Address, ResourceStatusToken: views.Token,
		})
	}, func(resp plugin.UpdateResponse, err error) (engine.StepFinished, error) {
		result, reasons, err := at.judge(ctx, p, err)
		if err != nil {
			return result, err
		}
		if !hadEffect(result) { // it may have been made of some views
			return at.publish(ctx, result)
		}
		result.ID, result.InitErrors, result.RefreshBeforeUpdate = at.step.Old.ID, reasons, resp.RefreshBeforeUpdate
		if at.step.Again {
			result.Moved = moved(oldOutputs, resp.Properties, inputs)
		}
		return at.finish(ctx, result, resp.Properties, inputs)
	})
}

// delete deletes the resource.
func (at *attempt) delete(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	u := at.step.URN
	inputs, outputs, err := at.olds(ctx)
	if err != nil {
		return engine.StepFinished{}, err
	}
	if at.step.Preview {
		return at.finish(ctx, engine.StepFinished{Outcome: engine.OutcomeDone}, nil, nil)
	}
	oldViews, err := at.oldViews(ctx)
	if err != nil {
		return engine.StepFinished{}, err
	}
	views := at.openViews()
	return mutate(ctx, at, p, func(ctx context.Context) (plugin.DeleteResponse, error) {
		return p.Delete(ctx, plugin.DeleteRequest{
			URN: u, Name: u.Name(), Type: u.Type(), ID: resource.ID(at.step.Old.ID),
			Inputs: inputs, Outputs: outputs, Timeout: at.step.Timeout, OldViews: oldViews,
			ResourceStatusAddress: views.Address, ResourceStatusToken: views.Token,
		})
	}, func(_ plugin.DeleteResponse, err error) (engine.StepFinished, error) {
		result, _, err := at.judge(ctx, p, err)
		if err != nil {
			return result, err
		}
		if !hadEffect(result) {
			return at.publish(ctx, result)
		}
		return at.finish(ctx, result, nil, nil)
	})
}

// configure carries out the step of a provider resource. It has no effect outside this worker, so it may run any number
// of times.
func (at *attempt) configure(ctx context.Context) (engine.StepFinished, error) {
	result := engine.StepFinished{Outcome: engine.OutcomeDone}
	switch at.step.Kind {
	case engine.StepCreate, engine.StepCreateReplacement:
		result.ID = engine.ProviderID(at.step.Seed)
		if at.step.Preview {
			result.ID = providers.UnknownID
		}
	case engine.StepUpdate:
		result.ID = at.step.Old.ID
	case engine.StepDelete, engine.StepDeleteReplaced:
		return at.finish(ctx, result, nil, nil)
	default:
		return at.unchanged(ctx)
	}
	inputs, checked, ended, err := at.inputs(ctx, compare.Configurator(at.session.facts))
	if err != nil || ended != nil {
		return deref(ended), err
	}
	result.Inputs = checked
	ref, err := token.NewReference(at.step.URN, resource.ID(result.ID))
	if err != nil {
		return failed(err.Error()), nil
	}
	if _, err := at.session.providers.Configured(ctx, ref.String(), inputs, engine.Bag{}); err != nil {
		return at.providerUnavailable(err)
	}
	return at.finish(ctx, result, pluginhost.ProviderConfig(inputs), inputs)
}

// unchanged returns the stored state as the result of a refresh or read of a resource that no provider can read.
func (at *attempt) unchanged(ctx context.Context) (engine.StepFinished, error) {
	state := at.step.Old
	if state == nil {
		state = at.step.New
	}
	outputs, err := at.session.values.Decode(ctx, state.Outputs)
	if err != nil {
		return engine.StepFinished{}, err
	}
	result := engine.StepFinished{
		Outcome: engine.OutcomeDone, ID: state.ID, Inputs: &state.Inputs, Diff: &engine.Diff{Change: engine.ChangeNone},
	}
	return at.finish(ctx, result, outputs, nil)
}

// moved returns the names of the outputs that an update changed and that are no inputs, sorted.
func moved(before, after, inputs resource.PropertyMap) (names []string) {
	for key, v := range after {
		was, had := before[key]
		if _, input := inputs[key]; !input && (!had || !was.DeepEquals(v)) {
			names = append(names, string(key))
		}
	}
	slices.Sort(names)
	return names
}
