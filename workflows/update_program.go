package workflows

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// programs runs the program, epoch after epoch, until an epoch delivers the program's exit to the Run.
func (u *update) programs(ctx workflow.Context) {
	defer func() { u.programActive = false }()
	for epoch := 1; ; epoch++ {
		out, err := u.program(ctx, epoch)
		var failure *temporal.ApplicationError
		switch {
		case u.run.IsReady(), err == nil && !out.Lost:
			return
		case u.cancelled:
			u.abandonProgram(ctx, epoch+1, engine.ProgramExited{Error: "the update was cancelled", Bailed: true})
			return
		case errors.As(err, &failure) && failure.NonRetryable() && !neverStarted(err):
			u.abandonProgram(ctx, epoch+1, engine.ProgramExited{Error: failure.Message()})
			return
		}
		limit := maxFruitlessEpochs
		if err != nil || out.OutOfSight {
			limit = maxWorkerLosses
		}
		if u.countFruitless(ctx, epoch) >= limit {
			u.abandonProgram(ctx, epoch+1, engine.ProgramExited{Error: "the program was lost several times in a row " +
				"without progress; look at its output and at the worker's log"})
			return
		}
		if err == nil {
			continue // the program died, its worker did not
		}
		if err := u.failOver(ctx); err != nil {
			u.failure = err
			return
		}
	}
}

// countFruitless returns how many epochs in a row were lost without progress, including the last one. It asks the Run
// what it has reached now: earlier answers say nothing about this epoch.
func (u *update) countFruitless(ctx workflow.Context, epoch int) int {
	u.signalRun(ctx, deployments.SignalMessages, deployments.Messages{Items: []deployments.Message{{Lost: epoch}}})
	_ = workflow.Await(ctx, func() bool { return u.reached.Lost >= epoch || u.run.IsReady() })
	return u.fruitlessEpochs
}

// recordProgress handles the Run's answer about a lost epoch.
func (u *update) recordProgress(at deployments.Reached) {
	if u.fruitlessEpochs++; at.Steps > u.reached.Steps {
		u.fruitlessEpochs = 0
	}
	u.reached = at
}

// program runs one epoch.
func (u *update) program(ctx workflow.Context, epoch int) (deployments.ProgramOutput, error) {
	ctx, cancel := workflow.WithCancel(onWorker(ctx, u.claimed.Worker, &noRetry))
	defer cancel()
	o := workflow.GetActivityOptions(ctx)
	o.Summary = "run the program"
	ctx = workflow.WithActivityOptions(ctx, o)
	in := deployments.ProgramInput{Update: u.in.Update, Base: u.claimed.Base, Goal: u.claimed.Goal, Epoch: epoch}
	future := execute(ctx, deployments.ActivityRunProgram, in)
	if u.stopProgram = cancel; u.cancelled {
		cancel()
	}
	var out deployments.ProgramOutput
	err := future.Get(ctx, &out)
	return out, err
}

// abandonProgram reports the program's exit under a new epoch, because the number of messages of the lost one is
// unknown.
func (u *update) abandonProgram(ctx workflow.Context, epoch int, e engine.ProgramExited) {
	e.Epoch = epoch
	u.signalRun(ctx, deployments.SignalMessages, deployments.Messages{
		Epoch: epoch, First: 1, Items: []deployments.Message{{Started: &engine.RunStarted{Epoch: epoch}}, {Exited: &e}},
	})
}

// failOver claims another worker and announces it to the Run. Steps on the former worker go on, so that one is released
// at the end of the update.
func (u *update) failOver(ctx workflow.Context) error {
	before := u.claimed.Worker
	if err := u.claim(ctx); err != nil {
		return err
	}
	u.formerWorkers = slices.DeleteFunc(append(u.formerWorkers, before), func(worker string) bool {
		return worker == u.claimed.Worker
	})
	u.announceWorker(ctx)
	return nil
}

// announceWorker tells the Run on which worker the update runs.
func (u *update) announceWorker(ctx workflow.Context) {
	u.signalRun(ctx, deployments.SignalMessages, deployments.Messages{Items: []deployments.Message{
		{Worker: u.claimed.Worker}}})
}

// handleWorkerLost answers the Run's report that a worker seems lost: with another worker, or, once, with the same one
// if it is alive. While the program runs, the heartbeat of its activity decides.
func (u *update) handleWorkerLost(ctx workflow.Context, worker string) {
	for u.claimed.Worker == worker {
		if u.alive(ctx, worker) && u.confirmedAlive != worker {
			u.confirmedAlive = worker
			break
		}
		if u.claimed.Worker != worker {
			break // the program has failed over meanwhile
		}
		if !u.programActive {
			if err := u.failOver(ctx); err != nil {
				u.failure = err
			}
			return
		}
		if err := workflow.Sleep(ctx, startTimeout); err != nil {
			return
		}
		u.confirmedAlive = ""
	}
	u.announceWorker(ctx)
}

// alive pings a worker. If the worker is gone, its successor answers, or nobody does.
func (u *update) alive(ctx workflow.Context, worker string) bool {
	return !workerLost(execute(onPing(ctx, worker), deployments.ActivityPingWorker).Get(ctx, nil))
}
