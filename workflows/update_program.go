package workflows

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// programs runs the program, epoch after epoch, until one ends with a verdict, which the Run has then heard.
func (u *update) programs(ctx workflow.Context) {
	defer func() { u.programming = false }()
	for epoch := 1; ; epoch++ {
		out, err := u.program(ctx, epoch)
		var failure *temporal.ApplicationError
		switch {
		case u.run.IsReady(), err == nil && !out.Lost:
			return
		case u.cancelled:
			u.giveUp(ctx, epoch+1, engine.ProgramExited{Error: "the update was cancelled", Bailed: true})
			return
		case errors.As(err, &failure) && failure.NonRetryable() && !unstarted(err):
			u.giveUp(ctx, epoch+1, engine.ProgramExited{Error: failure.Message()})
			return
		}
		limit := fruitless
		if err != nil {
			limit = homeless
		}
		if u.fruitless(ctx, epoch) >= limit {
			u.giveUp(ctx, epoch+1, engine.ProgramExited{Error: "the program was lost several times in a row without " +
				"progress; look at its output and at the worker's log"})
			return
		}
		if err == nil {
			continue // the program died, its worker did not
		}
		if err := u.moveOn(ctx); err != nil {
			u.broken = err
			return
		}
	}
}

// fruitless gives the number of epochs in a row that were lost without progress, the last one included. The Run
// is asked for what it has reached by now: what it had reached when the epoch began tells nothing about the epoch.
func (u *update) fruitless(ctx workflow.Context, epoch int) int {
	u.tell(ctx, deployments.SignalMessages, deployments.Messages{Items: []deployments.Message{{Lost: epoch}}})
	_ = workflow.Await(ctx, func() bool { return u.reached.Lost >= epoch || u.run.IsReady() })
	return u.lost
}

// count takes the Run's answer about a lost epoch.
func (u *update) count(at deployments.Reached) {
	if u.lost++; at.Steps > u.reached.Steps {
		u.lost = 0
	}
	u.reached = at
}

// program runs one epoch.
func (u *update) program(ctx workflow.Context, epoch int) (deployments.ProgramOutput, error) {
	ctx, cancel := workflow.WithCancel(onWorker(ctx, u.claimed.Worker, &once))
	defer cancel()
	o := workflow.GetActivityOptions(ctx)
	o.Summary = "run the program"
	ctx = workflow.WithActivityOptions(ctx, o)
	in := deployments.ProgramInput{Update: u.in.Update, Base: u.claimed.Base, Goal: u.claimed.Goal, Epoch: epoch}
	future := workflow.ExecuteActivity(ctx, deployments.ActivityProgram, in)
	if u.stopProgram = cancel; u.cancelled {
		cancel()
	}
	var out deployments.ProgramOutput
	err := future.Get(ctx, &out)
	return out, err
}

// giveUp ends the program without a count of what it said: in an epoch in which it says nothing.
func (u *update) giveUp(ctx workflow.Context, epoch int, e engine.ProgramExited) {
	e.Epoch = epoch
	u.tell(ctx, deployments.SignalMessages, deployments.Messages{
		Epoch: epoch, First: 1, Items: []deployments.Message{{Started: &engine.RunStarted{Epoch: epoch}}, {Exited: &e}},
	})
}

// moveOn claims another worker and tells the Run. What is under way on the one before goes on, so that is released at
// the end.
func (u *update) moveOn(ctx workflow.Context) error {
	before := u.claimed.Worker
	if err := u.claim(ctx); err != nil {
		return err
	}
	u.left = slices.DeleteFunc(append(u.left, before), func(worker string) bool { return worker == u.claimed.Worker })
	u.home(ctx)
	return nil
}

// home tells the Run on which worker the update lives.
func (u *update) home(ctx workflow.Context) {
	u.tell(ctx, deployments.SignalMessages, deployments.Messages{Items: []deployments.Message{
		{Worker: u.claimed.Worker}}})
}

// replace answers the Run, to which a worker seems to be lost: with another, or once with the same if it is alive.
// While the program is there, its own heartbeat decides.
func (u *update) replace(ctx workflow.Context, worker string) {
	for u.claimed.Worker == worker {
		if u.alive(ctx, worker) && u.vouched != worker {
			u.vouched = worker
			break
		}
		if u.claimed.Worker != worker {
			break // the program has moved meanwhile
		}
		if !u.programming {
			if err := u.moveOn(ctx); err != nil {
				u.broken = err
			}
			return
		}
		if err := workflow.Sleep(ctx, notStarted); err != nil {
			return
		}
		u.vouched = ""
	}
	u.home(ctx)
}

// alive asks a worker for a sign of life. Only its successor, or nobody, answers for a worker that is gone.
func (u *update) alive(ctx workflow.Context, worker string) bool {
	ctx = workflow.WithStartToCloseTimeout(onWorker(ctx, worker, &once), notStarted)
	return !lost(workflow.ExecuteActivity(ctx, deployments.ActivityPing).Get(ctx, nil))
}
