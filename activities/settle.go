package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/internal/properties"
	"github.com/deployctl/deployctl/internal/token"
	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// secondLook is the pause between the two reads that establish an absence: many clouds are eventually consistent.
const secondLook = 2 * time.Second

// overtime is how long after the step's deadline Settle still waits for the answer to its call.
const overtime = time.Minute

// settlePatience is how long an update that only settles tries to reach a provider: others wait for the stack, and the
// provider may be one that only the client of the earlier update can reach.
const settlePatience = 2 * time.Minute

// Settle finds out the outcome of a step whose answer was lost. It changes nothing. If the lost attempt ran on this
// worker, Settle first waits until it is over: while its call runs, a resource that is absent may still appear. The
// result is done or partial (the effect exists), absent (it does not: the step may be repeated) or undecidable.
func (a *Activities) Settle(ctx context.Context, in deployments.SettleInput) (engine.StepFinished, error) {
	s, err := a.hosted(ctx, in.Update, in.Base)
	if err != nil {
		return engine.StepFinished{}, failure(err)
	}
	at := &attempt{session: s, step: in.Settle.Step, round: in.Round, heartbeat: startHeartbeat(ctx, a.Heart)}
	defer at.heartbeat.stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case <-at.heartbeat.cancelled:
			end(temporal.NewCanceledError())
		case <-ctx.Done():
		}
	}()

	result, err := at.settle(ctx, in.Settle.Again)
	if err != nil && s.request.Settle != nil && ctx.Err() == nil &&
		time.Since(activity.GetInfo(ctx).ScheduledTime) > settlePatience {
		result, err = engine.StepFinished{Outcome: engine.OutcomeUndecidable, Error: pluginhost.ErrorText(err)}, nil
	}
	return result, at.redactResult(ctx, &result).failure(err)
}

// awaitLostCall waits until the lost attempt's call has returned and its result is stored. It returns false if the call
// still runs overtime after its deadline. A requested cancel is passed on to the lost call, which ends it.
func (at *attempt) awaitLostCall(ctx context.Context) (bool, error) {
	found, ok := at.session.sent.Load(at.step.Op)
	if !ok {
		return true, nil
	}
	lost := found.(*attempt)
	timer := time.NewTimer(time.Until(lost.until.Add(overtime)))
	defer timer.Stop()
	for waiting := true; waiting; {
		select {
		case <-lost.over:
			return true, nil
		case <-timer.C:
			if !lost.keeping.Load() {
				return false, nil
			}
			timer.Reset(lastRetry) // it was answered, and its result is being stored
		case <-at.heartbeat.cancelled:
			waiting = false
		case <-ctx.Done():
			if !at.heartbeat.cancelRequested(ctx) {
				return false, context.Cause(ctx)
			}
			waiting = false
		}
	}
	cancelCall(ctx, lost.provider, lost.over)
	return true, nil
}

func (at *attempt) settle(ctx context.Context, again bool) (engine.StepFinished, error) {
	if over, err := at.awaitLostCall(ctx); err != nil || !over {
		return undecidableNoAnswer, err
	}
	found, ok, err := at.session.leftOutcome(context.WithoutCancel(ctx), at.step.Op, at.round)
	if err != nil || ok {
		return found, err
	}
	if at.step.Preview || at.step.Provider == nil || token.IsProvider(at.step.Type) {
		return absent, nil // such a step has no effect on a provider
	}
	p, err := at.session.providerOf(ctx, at.step.Provider)
	if err != nil {
		return at.settleFailed(err)
	}
	switch at.step.Kind {
	case engine.StepCreate, engine.StepCreateReplacement:
		return at.settleCreate(ctx, p, again)
	case engine.StepUpdate:
		return at.settleUpdate(ctx, p)
	case engine.StepDelete, engine.StepDeleteReplaced:
		return at.settleDelete(ctx, p)
	default:
		return absent, nil // a read
	}
}

var (
	absent              = engine.StepFinished{Outcome: engine.OutcomeAbsent}
	undecidableNoAnswer = engine.StepFinished{Outcome: engine.OutcomeUndecidable,
		Error: "its call was not answered in its time, and may still have its effect"}
	// The reasons for which only a person can decide the outcome of a create.
	undecidableNoRule = engine.StepFinished{Outcome: engine.OutcomeUndecidable,
		Error: "its answer was lost, and no rule (deployctl:settle in the stack's configuration) says how to find it"}
	undecidableNoName = engine.StepFinished{Outcome: engine.OutcomeUndecidable,
		Error: "its answer was lost, and the property by which to find it is not known"}
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

// settleCreate looks for the resource by the settle rule of its type. With a convergent provider there is no need to
// look if the create is repeated: the repeated create finds the resource.
func (at *attempt) settleCreate(ctx context.Context, p *pluginhost.Provider, again bool) (engine.StepFinished, error) {
	rule := at.session.settleRule(ctx, p, at.step.Type)
	switch {
	case rule.reconcile && again:
		return absent, nil
	case rule.reconcile:
		found, err := at.settleByLookup(ctx, p)
		switch {
		case err == nil && found.Foreign:
			return absent, nil // a repeated create refuses a resource that is not ours
		case found.Outcome == engine.OutcomeDone:
			found.InitErrors = []string{"it was found after its answer was lost; the next update makes it as declared"}
		}
		return found, err
	case rule.lookup:
		return at.settleByLookup(ctx, p)
	case rule.path == nil:
		return undecidableNoRule, nil
	}
	declared, inputs, err := at.checked(ctx, p)
	if err != nil {
		return at.settleFailed(err)
	}
	if rule.value(inputs) == "" {
		return undecidableNoName, nil
	}
	// A name that was generated for this create belongs to nothing else.
	seeded := at.step.Check && rule.value(declared) == "" || at.generated(rule, declared)
	return twice(ctx, func() (engine.StepFinished, error) {
		found, reasons, ended, err := at.look(ctx, p, rule, inputs)
		switch {
		case err != nil:
			return engine.StepFinished{}, err
		case ended != nil:
			return engine.StepFinished{Outcome: engine.OutcomeUndecidable, Error: ended.Error}, nil
		case found.ID == "" || found.Outputs == nil:
			return absent, nil
		case seeded:
			return at.found(ctx, found, reasons, inputs)
		}
		if seen, err := at.sawAbsence(ctx); err != nil || !seen {
			return undecidableForeign, err // it may have existed before the create
		}
		return at.found(ctx, found, reasons, inputs)
	})
}

// settleByLookup uses the provider's own look-up, which also reports who owns the resource that it finds.
func (at *attempt) settleByLookup(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	_, inputs, err := at.checked(ctx, p)
	if err != nil {
		return at.settleFailed(err)
	}
	return twice(ctx, func() (engine.StepFinished, error) {
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
		return undecidableNoRule, nil
	})
}

// twice looks a second time before it reports an absence.
func twice(ctx context.Context, look func() (engine.StepFinished, error)) (engine.StepFinished, error) {
	result, err := look()
	if err != nil || result.Outcome != engine.OutcomeAbsent {
		return result, err
	}
	if err := pause(ctx, secondLook); err != nil {
		return engine.StepFinished{}, err
	}
	return look()
}

// checked returns the inputs of a create as the program declared them and as they were sent.
func (at *attempt) checked(
	ctx context.Context, p *pluginhost.Provider,
) (declared, inputs resource.PropertyMap, err error) {
	if declared, err = at.session.values.Decode(ctx, at.step.New.Inputs); err != nil {
		return nil, nil, internalError(err)
	}
	if !at.step.Check {
		return declared, declared, nil
	}
	u := at.step.URN
	resp, err := p.Check(ctx, plugin.CheckRequest{
		URN: u, Name: u.Name(), Type: u.Type(), News: declared, RandomSeed: at.step.Seed,
		Autonaming: at.session.names.Propose(u, at.step.Seed),
	})
	return declared, resp.Properties, err
}

// found returns the result of a step whose effect exists.
func (at *attempt) found(
	ctx context.Context, r plugin.ReadResponse, reasons []string, inputs resource.PropertyMap,
) (engine.StepFinished, error) {
	result := engine.StepFinished{
		Outcome: engine.OutcomeDone, ID: string(r.ID), InitErrors: reasons, RefreshBeforeUpdate: r.RefreshBeforeUpdate,
	}
	if len(reasons) > 0 {
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
	if at.session.settleRule(ctx, p, at.step.Type).reconcile {
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
	d, err := comparison{
		urn: at.step.URN, id: string(found.ID), oldInputs: inputs, oldOutputs: found.Outputs, newInputs: news,
		ignoreChanges: at.step.New.IgnoreChanges,
	}.diff(ctx, p)
	switch {
	case err != nil && !unavailable(err):
		return at.settleFailed(err)
	case err != nil || d.Changes == plugin.DiffSome:
		return absent, nil
	}
	found.Outputs = properties.KeepSecrets(found.Outputs, news)
	return at.found(ctx, found, reasons, news)
}

// settleDelete checks whether the resource still exists.
func (at *attempt) settleDelete(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, error) {
	if at.session.settleRule(ctx, p, at.step.Type).reconcile {
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

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
