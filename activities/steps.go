package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/session"
	"github.com/deployctl/deployctl/internal/host/step"
)

// Step makes one provider call of an update: a change or a read. A result is definite: done, partial, failed, or
// cancelled before the call was sent. The errors are ErrorNotDone, ErrorThrottled and ErrorPostponed (the step may be
// repeated), ErrorUnknownOutcome (settle the step first), ErrorNotStarted, and those of the service.
func (a *Activities) Step(ctx context.Context, in deployments.StepInput) (deployments.StepOutput, error) {
	s, err := a.sessions.Hosted(ctx, in.Update, in.Base)
	if err != nil {
		return step.NotHosted(ctx, in, err)
	}
	return s.Steps().Make(ctx, a.Heart, in)
}

// Settle finds out the outcome of a step whose answer was lost. It changes nothing. If the lost attempt ran on this
// worker, Settle first waits until it is over: while its call runs, a resource that is absent may still appear. The
// result is done or partial (the effect exists), absent (it does not: the step may be repeated) or undecidable.
func (a *Activities) Settle(ctx context.Context, in deployments.SettleInput) (engine.StepFinished, error) {
	s, err := a.sessions.Hosted(ctx, in.Update, in.Base)
	if err != nil {
		return engine.StepFinished{}, failure.Of(err)
	}
	return s.Steps().Settle(ctx, a.Heart, in, in.Worker == a.Worker)
}

// AskFormerWorker asks the worker whose attempt of a step was lost what it knows, when another one hosts the update:
// what the step came to, once its call has returned, or that the call was never sent (absent). OutcomeUnknown: it does
// not know.
func (a *Activities) AskFormerWorker(ctx context.Context, in deployments.SettleInput) (engine.StepFinished, error) {
	unknown := engine.StepFinished{Op: in.Settle.Step.Op, Attempt: in.Attempt(), Outcome: engine.OutcomeUnknown}
	s := a.sessions.Find(in.Update)
	if s == nil {
		return unknown, nil
	}
	if _, err := s.Await(ctx); err != nil {
		return unknown, failure.Of(err)
	}
	return s.Steps().Inquire(ctx, a.Heart, in)
}

// RefreshResources reads stored resources and reports how the real resources differ from the state. It has no effect,
// so it may run any number of times. Its result has the refreshes that succeeded, and names those that it did not
// begin. The others are repeated by Step, which knows retries, rate limits and a cancel of one.
func (a *Activities) RefreshResources(
	ctx context.Context, in deployments.RefreshInput,
) (deployments.RefreshOutput, error) {
	s, err := a.sessions.Hosted(ctx, in.Update, in.Base)
	if err != nil {
		return deployments.RefreshOutput{}, failure.Of(err)
	}
	beats := heartbeat.Start(ctx, a.Heart)
	defer beats.Stop()
	return s.Steps().Refresh(ctx, beats, in, a.groupTime)
}

// groupTime is how long a group of refreshes goes on beginning to read. What is not begun then is left to a later
// group, so that people see the results of slow reads.
const groupTime = 10 * time.Second

// RunProgram runs the program once, as one epoch. It serves the resource monitor, passes the program's requests to the
// Run and the Run's replies to the program, and returns when the program has ended. That it failed, or was lost, is a
// result. The errors are ErrorNotStarted (another worker hosts the update, or this one stops), and those of the
// service.
func (a *Activities) RunProgram(ctx context.Context, in deployments.ProgramInput) (deployments.ProgramOutput, error) {
	s, err := a.sessions.Hosted(ctx, in.Update, in.Base)
	if err != nil {
		return deployments.ProgramOutput{}, failure.Of(err)
	}
	beats := heartbeat.Start(ctx, a.Heart)
	defer beats.Stop()
	return s.Program(ctx, beats, in, session.ProgramOptions{Runs: a.Runs, Headers: a.ReadHeaders})
}

// RunHook runs a function of the program before or after a step, or after it failed. It waits until the program runs:
// if the program was lost, until it has started again. An error of the hook is a part of the result. A hook whose
// program is lost meanwhile fails with CodeUnavailable, and runs again.
func (a *Activities) RunHook(ctx context.Context, in deployments.HookInput) (engine.HookFinished, error) {
	s, err := a.sessions.Hosted(ctx, in.Update, in.Base)
	if err != nil {
		return engine.HookFinished{}, failure.Of(err)
	}
	beats := heartbeat.Start(ctx, a.Heart)
	defer beats.Stop()
	return s.Hook(ctx, beats, in.Hook)
}
