package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/step"
)

// Step makes one provider call of an update: a change or a read. A result is definite: done, partial, failed, or
// cancelled before the call was sent. The errors are ErrorNotDone, ErrorThrottled and ErrorPostponed (the step may be
// repeated), ErrorUnknownOutcome (settle the step first), ErrorNotStarted, and those of the service.
func (a *Activities) Step(ctx context.Context, in deployments.StepInput) (deployments.StepOutput, error) {
	s, err := a.hosted(ctx, in.Update, in.Base)
	if err != nil {
		return step.NotHosted(ctx, in, err)
	}
	return s.steps.Make(ctx, a.Heart, in)
}

// Settle finds out the outcome of a step whose answer was lost. It changes nothing. If the lost attempt ran on this
// worker, Settle first waits until it is over: while its call runs, a resource that is absent may still appear. The
// result is done or partial (the effect exists), absent (it does not: the step may be repeated) or undecidable.
func (a *Activities) Settle(ctx context.Context, in deployments.SettleInput) (engine.StepFinished, error) {
	s, err := a.hosted(ctx, in.Update, in.Base)
	if err != nil {
		return engine.StepFinished{}, failure.Of(err)
	}
	return s.steps.Settle(ctx, a.Heart, in, in.Worker == a.Worker)
}

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
		return unknown, failure.Of(err)
	}
	return s.steps.Inquire(ctx, a.Heart, in)
}

// Refresh reads stored resources and reports how the real resources differ from the state. It has no effect, so it may
// run any number of times. Its result has the refreshes that succeeded, and names those that it did not begin. The
// others are repeated by Step, which knows retries, rate limits and a cancel of one.
func (a *Activities) Refresh(ctx context.Context, in deployments.RefreshInput) (deployments.RefreshOutput, error) {
	s, err := a.hosted(ctx, in.Update, in.Base)
	if err != nil {
		return deployments.RefreshOutput{}, failure.Of(err)
	}
	beats := heartbeat.Start(ctx, a.Heart)
	defer beats.Stop()
	return s.steps.Refresh(ctx, beats, in, a.groupTime)
}

// groupTime is how long a group of refreshes goes on beginning to read. What is not begun then is left to a later
// group, so that people see the results of slow reads.
const groupTime = 10 * time.Second
