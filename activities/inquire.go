package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"go.temporal.io/sdk/temporal"
)

// Inquire asks the worker whose attempt of a step was lost what it knows, when another one hosts the update: what the
// step came to, once its call has returned, or that the call was never sent (absent). OutcomeUnknown: it does not
// know.
func (a *Activities) Inquire(ctx context.Context, in deployments.SettleInput) (engine.StepFinished, error) {
	unknown := engine.StepFinished{Op: in.Settle.Step.Op, Attempt: in.Attempt(), Outcome: engine.OutcomeUnknown}
	s := a.find(in.Update)
	if s == nil {
		return unknown, nil
	}
	if _, err := s.await(ctx); err != nil {
		return unknown, failure(err)
	}
	at, ctx, end := a.lostAttempt(ctx, s, in)
	defer end()
	result, err := at.remembered(ctx, true)
	hide := at.redactResult(ctx, &result)
	result.Attempt = in.Attempt()
	return result, hide.failure(err)
}

// lostAttempt begins to find out about a lost attempt, until end is called or the activity is cancelled.
func (a *Activities) lostAttempt(
	ctx context.Context, s *session, in deployments.SettleInput,
) (at *attempt, settling context.Context, end func()) {
	at = &attempt{session: s, step: in.Settle.Step, round: in.Round, former: in.Worker,
		heartbeat: startHeartbeat(ctx, a.Heart)}
	settling, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-at.heartbeat.cancelled:
			cancel(temporal.NewCanceledError())
		case <-settling.Done():
		}
	}()
	return at, settling, func() {
		cancel(nil)
		at.heartbeat.stop()
	}
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

// remembered returns what is known of a lost attempt without asking the provider; OutcomeUnknown if that is nothing. It
// waits for a call that still runs here. This worker, if it made the attempt, knows of every call that was sent.
func (at *attempt) remembered(ctx context.Context, here bool) (engine.StepFinished, error) {
	if over, err := at.awaitLostCall(ctx); err != nil || !over {
		return undecidableNoAnswer, err
	}
	if kept, ok := at.session.answers.of(at.stepOf(), at.round); ok {
		return kept, nil
	}
	found, ok, err := at.session.leftOutcome(context.WithoutCancel(ctx), at.step.Op, at.round)
	if err != nil || ok {
		return found, err
	}
	if last, spent := at.session.spent.Load(at.step.Op); here && (!spent || last.(int) < at.round) {
		return absent, nil
	}
	if never, err := at.neverSent(ctx); err != nil || never {
		return absent, err
	}
	return engine.StepFinished{Outcome: engine.OutcomeUnknown}, nil
}

// settleMade reads what a create of an earlier update has made, if its answer came after that had ended.
func (at *attempt) settleMade(ctx context.Context, p *pluginhost.Provider) (engine.StepFinished, bool, error) {
	if at.round > 0 || len(at.step.Seed) == 0 {
		return engine.StepFinished{}, false, nil
	}
	id, err := at.session.store.Made(ctx, at.session.update.StackName, at.step.Seed)
	if err != nil || id == "" {
		return engine.StepFinished{}, false, err
	}
	_, inputs, err := at.checked(ctx, p)
	if err != nil {
		result, err := at.settleFailed(err)
		return result, true, err
	}
	found, reasons, ended, err := at.ask(ctx, p, id, inputs, nil)
	switch {
	case err != nil || ended != nil:
		return engine.StepFinished{}, false, err // the rule of its type may still find it
	case found.ID == "" || found.Outputs == nil: // somebody has deleted it since
		return absent, true, nil
	}
	result, err := at.found(ctx, found, reasons, inputs)
	return result, true, err
}
