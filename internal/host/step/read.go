package step

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// ask reads the resource with an id. Values that are secret in inputs or state stay secret in the values that are
// found. Reasons are those of a failed initialisation. If the read fails for good, ended is the step's result; a
// transient failure is an error, and the step is repeated.
func (at *attempt) ask(
	ctx context.Context, p *pluginhost.Provider, id string, inputs, state resource.PropertyMap,
) (found plugin.ReadResponse, reasons []string, ended *engine.StepFinished, err error) {
	u := at.step.URN
	if err := at.keepRate(ctx); err != nil {
		return found, nil, nil, err
	}
	oldViews, err := at.oldViews(ctx)
	if err != nil {
		return found, nil, nil, err
	}
	views := at.openViews()
	found, err = pluginhost.Await(ctx, func() (plugin.ReadResponse, error) {
		return p.Read(ctx, plugin.ReadRequest{
			URN: u, Name: u.Name(), Type: u.Type(), ID: resource.ID(id), Inputs: inputs, State: state,
			Timeout: at.step.Timeout, OldViews: oldViews, ResourceStatusAddress: views.Address,
			ResourceStatusToken: views.Token,
		})
	})
	at.observe(err)
	found.Inputs = properties.KeepSecrets(found.Inputs, inputs)
	found.Outputs = properties.KeepSecrets(properties.KeepSecrets(found.Outputs, inputs), state)
	var init *plugin.InitError
	switch {
	case err == nil:
		return found, nil, nil, nil
	case errors.As(err, &init):
		return found, init.Reasons, nil, nil
	case ctx.Err() != nil:
		return found, nil, nil, context.Cause(ctx)
	}
	result, err := at.providerUnavailable(err)
	return found, nil, &result, err
}

// isMissing reports whether a provider has found no resource. It then returns an empty id, and some providers an empty
// object with it. Others return no id for a resource that is there.
func isMissing(found plugin.ReadResponse) bool {
	return found.Outputs == nil || found.ID == "" && len(found.Outputs) == 0
}

// read reads an external resource, which the stack does not own. In a preview its id may not be known yet.
func (at *attempt) read(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	id := at.step.New.ID
	if id == plugin.UnknownStringValue {
		return at.finish(ctx, engine.StepFinished{Outcome: engine.OutcomeDone, ID: id}, nil, nil)
	}
	inputs, err := at.session.values.Decode(ctx, at.step.New.Inputs)
	if err != nil {
		return engine.StepFinished{}, err
	}
	found, reasons, ended, err := at.ask(ctx, p, id, inputs, inputs)
	if err != nil || ended != nil {
		return deref(ended), err
	}
	if isMissing(found) {
		return failed(fmt.Sprintf("resource '%s' does not exist", id)), nil
	}
	if found.ID != "" {
		id = string(found.ID)
	}
	result := engine.StepFinished{Outcome: engine.OutcomeDone, ID: id, InitErrors: reasons}
	if len(reasons) > 0 {
		result.Outcome = engine.OutcomePartial
	}
	return at.finish(ctx, result, found.Outputs, inputs)
}

// refresh reads a stored resource and reports how the real resource differs from the state.
func (at *attempt) refresh(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	old := at.step.Old
	if !old.Custom || old.PendingReplacement {
		return at.unchanged(ctx)
	}
	oldInputs, oldOutputs, err := at.olds(ctx)
	if err != nil {
		return engine.StepFinished{}, err
	}
	found, reasons, ended, err := at.ask(ctx, p, old.ID, oldInputs, oldOutputs)
	if err != nil || ended != nil {
		return deref(ended), err
	}
	if at.session.request.Survey {
		if err := at.survey(ctx, p, oldInputs); err != nil {
			return engine.StepFinished{}, err
		}
	}
	if found.ID == "" || found.Outputs == nil {
		return at.finish(ctx, engine.StepFinished{Outcome: engine.OutcomeDone}, nil, nil)
	}
	inputs := oldInputs
	if found.Inputs != nil {
		inputs = properties.WithoutOutputs(found.Inputs)
	}
	bag, err := at.keep(ctx, inputs)
	if err != nil {
		return engine.StepFinished{}, err
	}
	result := engine.StepFinished{
		Outcome: engine.OutcomeDone, ID: string(found.ID), Inputs: &bag, InitErrors: reasons,
		RefreshBeforeUpdate: found.RefreshBeforeUpdate,
	}
	if result, err = at.finish(ctx, result, found.Outputs, inputs); err != nil {
		return result, err
	}
	diff, err := at.drift(ctx, p, compare.Resource{
		URN: at.step.URN, ID: string(found.ID), OldInputs: inputs, OldOutputs: found.Outputs, NewInputs: oldInputs,
		IgnoreChanges: old.IgnoreChanges, Unknowns: at.step.Preview,
	}, oldOutputs, isStored(result, old))
	if err != nil {
		return at.providerUnavailable(err)
	}
	result.Diff = &diff
	if len(reasons) > 0 {
		at.session.tell(diag.Warning, at.step.URN,
			"refreshed resource is in an unhealthy state:\n* "+strings.Join(reasons, "\n* "))
	}
	if at.session.request.TrySettle {
		if err := at.trySettle(ctx, p, oldInputs); err != nil {
			return engine.StepFinished{}, err
		}
	}
	// Values that are stored already need not travel.
	if result.Inputs.Same(old.Inputs) {
		result.Inputs = &old.Inputs
	}
	if result.Outputs.Same(old.Outputs) {
		result.Outputs = old.Outputs
	}
	return result, nil
}

// isStored reports whether a refresh found just what is stored.
func isStored(found engine.StepFinished, old *engine.State) bool {
	return found.ID == old.ID && found.Inputs.Same(old.Inputs) && found.Outputs.Same(old.Outputs)
}

// drift returns the inverse of the diff that an update right after would have: the changes that were made to the
// resource outside of the stack. Of an external resource only the outputs are compared. If what was found is what is
// stored, the provider need not be asked again.
func (at *attempt) drift(
	ctx context.Context, p *pluginhost.Provider, c compare.Resource, oldOutputs resource.PropertyMap, unchanged bool,
) (engine.Diff, error) {
	if at.step.Old.External {
		changes := oldOutputs.Diff(c.OldOutputs)
		if !changes.AnyChanges() {
			return engine.Diff{Change: engine.ChangeNone}, nil
		}
		return compare.DiffOf(plugin.DiffResult{
			Changes: plugin.DiffSome, ChangedKeys: changes.ChangedKeys(),
			DetailedDiff: plugin.NewDetailedDiffFromObjectDiff(changes, false),
		}), nil
	}
	known := compare.ComparisonKey("")
	if unchanged {
		known = compare.StoredKey(at.session.stackID, at.step.Provider, p, at.step.Old, c.IgnoreChanges)
		if at.session.compared.Equal(known) {
			return engine.Diff{Change: engine.ChangeNone}, nil
		}
	}
	d, err := c.Diff(ctx, p)
	if compare.Unavailable(err) {
		d, err = plugin.DiffResult{Changes: plugin.DiffSome}, nil
	}
	if err != nil {
		return engine.Diff{}, err
	}
	d = d.Invert()
	if d.Changes == plugin.DiffSome && len(d.ChangedKeys)+len(d.ReplaceKeys)+len(d.DetailedDiff) == 0 {
		d.DetailedDiff = changedOutputs(oldOutputs, c.OldOutputs, c.NewInputs)
	}
	diff := compare.DiffOf(d)
	at.session.compared.Note(known, diff)
	if diff.Change == engine.ChangeReplace {
		diff.Change = engine.ChangeUpdate // a refresh replaces nothing
	}
	return diff, nil
}

// changedOutputs names what has become of a resource, for a provider that says only that an update would change it: the
// outputs that inputs stand for, or all if it is none of those.
func changedOutputs(before, now, inputs resource.PropertyMap) map[string]plugin.PropertyDiff {
	all := before.Diff(now)
	if all == nil {
		return nil
	}
	declared := before.Diff(now, func(key resource.PropertyKey) bool { _, ok := inputs[key]; return !ok })
	if declared == nil {
		declared = all
	}
	return plugin.NewDetailedDiffFromObjectDiff(declared, false)
}

// adopt imports an existing resource and reports how the program's inputs differ from it.
func (at *attempt) adopt(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	id := at.step.New.ImportID
	known, ended, err := at.createInputs(ctx, p)
	if err != nil || ended != nil {
		return deref(ended), err
	}
	found, reasons, ended, err := at.ask(ctx, p, id, known, nil)
	switch {
	case err != nil || ended != nil:
		return deref(ended), err
	case isMissing(found):
		return failed(fmt.Sprintf("resource '%s' does not exist", id)), nil
	case found.Inputs == nil:
		return failed(fmt.Sprintf("the provider does not support importing resources of type %s", at.step.Type)), nil
	}
	if found.ID != "" {
		id = string(found.ID)
	}
	declared, err := at.session.values.Decode(ctx, at.step.New.Inputs)
	if err != nil {
		return engine.StepFinished{}, err
	}
	found.Inputs, found.Outputs = properties.KeepSecrets(found.Inputs, declared),
		properties.KeepSecrets(found.Outputs, declared)
	inputs := properties.WithoutOutputs(found.Inputs)
	result := engine.StepFinished{
		Outcome: engine.OutcomeDone, ID: id, InitErrors: reasons, RefreshBeforeUpdate: found.RefreshBeforeUpdate,
		Diff: &engine.Diff{Change: engine.ChangeNone},
	}
	if at.session.plannedImport() {
		inputs = keptInputs(at.session.importOf(at.step.URN), inputs)
		if err := at.checkImported(ctx, p, inputs); err != nil {
			return at.providerUnavailable(err)
		}
	} else {
		failures, err := at.deviation(ctx, p, id, found, &result)
		if err != nil {
			return at.providerUnavailable(err)
		}
		if len(failures) > 0 {
			return engine.StepFinished{Outcome: engine.OutcomeFailed, Failures: failures}, nil
		}
	}
	bag, err := at.keep(ctx, inputs)
	if err != nil {
		return engine.StepFinished{}, err
	}
	result.Inputs = &bag
	return at.finish(ctx, result, found.Outputs, inputs)
}

// deviation puts into the result the difference between the declared inputs and the resource that was found. It returns
// the failures of the provider's Check.
func (at *attempt) deviation(
	ctx context.Context, p *pluginhost.Provider, id string, found plugin.ReadResponse, result *engine.StepFinished,
) ([]engine.CheckFailure, error) {
	u := at.step.URN
	declared, err := at.session.values.Decode(ctx, at.step.New.Inputs)
	if err != nil {
		return nil, failure.Internal(err)
	}
	declared, _ = properties.IgnoreChanges(declared, found.Inputs, at.step.IgnoreChanges)
	declared = at.session.rules.WithMark(ctx, p, at.step.Provider, at.step.Type, nil, declared, found.Inputs)
	checked, err := p.Check(ctx, plugin.CheckRequest{
		URN: u, Name: u.Name(), Type: u.Type(), Olds: found.Inputs, News: declared,
		AllowUnknowns: at.step.Preview, RandomSeed: at.step.Seed, Autonaming: at.session.names.Propose(u, at.step.Seed),
	})
	if err != nil || len(checked.Failures) > 0 {
		return compare.FailuresOf(checked.Failures), err
	}
	d, err := compare.Resource{
		URN: u, ID: id, OldInputs: found.Inputs, OldOutputs: found.Outputs, NewInputs: checked.Properties,
		IgnoreChanges: at.step.IgnoreChanges, Unknowns: at.step.Preview,
	}.Diff(ctx, p)
	if compare.Unavailable(err) {
		d, err = plugin.DiffResult{Changes: plugin.DiffNone}, nil
	}
	if err != nil {
		return nil, err
	}
	diff := compare.DiffOf(d)
	result.Diff = &diff
	return nil, nil
}
