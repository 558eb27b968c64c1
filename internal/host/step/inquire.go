package step

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// lostAttempt begins to find out about a lost attempt, until end is called or the activity is cancelled.
func (s *Steps) lostAttempt(
	ctx context.Context, heart heartbeat.Heart, in deployments.SettleInput,
) (at *attempt, settling context.Context, end func()) {
	at = &attempt{session: s, step: in.Settle.Step, round: in.Round, former: in.Worker,
		heartbeat: heartbeat.Start(ctx, heart)}
	settling, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-at.heartbeat.Cancelled():
			cancel(temporal.NewCanceledError())
		case <-settling.Done():
		}
	}()
	return at, settling, func() {
		cancel(nil)
		at.heartbeat.Stop()
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
			timer.Reset(failure.LastRetry) // it was answered, and its result is being stored
		case <-at.heartbeat.Cancelled():
			waiting = false
		case <-ctx.Done():
			if !at.heartbeat.CancelRequested(ctx) {
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
	id, err := at.session.store.Creates.Made(ctx, at.session.update.StackName, at.step.Seed)
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

// Settle finds out the outcome of a step whose answer was lost; here: its attempt ran on this worker.
func (s *Steps) Settle(
	ctx context.Context, heart heartbeat.Heart, in deployments.SettleInput, here bool,
) (engine.StepFinished, error) {
	ctx, release := intake.WithHold(ctx)
	defer release()
	at, ctx, end := s.lostAttempt(ctx, heart, in)
	defer end()
	result, err := at.settle(ctx, in.Settle, here)
	if err != nil && s.request.Settle != nil && ctx.Err() == nil &&
		time.Since(activity.GetInfo(ctx).ScheduledTime) > settlePatience {
		result, err = engine.StepFinished{Outcome: engine.OutcomeUndecidable, Error: pluginhost.ErrorText(err)}, nil
	}
	hide := at.redactResult(ctx, &result)
	result.Attempt = in.Attempt()
	return result, hide.Failure(err)
}

// Inquire says what this worker knows of a lost attempt that it has made.
func (s *Steps) Inquire(
	ctx context.Context, heart heartbeat.Heart, in deployments.SettleInput,
) (engine.StepFinished, error) {
	at, ctx, end := s.lostAttempt(ctx, heart, in)
	defer end()
	result, err := at.remembered(ctx, true)
	hide := at.redactResult(ctx, &result)
	result.Attempt = in.Attempt()
	return result, hide.Failure(err)
}
