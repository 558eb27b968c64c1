package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// issue takes everything that the core has ready: it queues changes and events for the saver and replies for the
// program, and starts the commands. While the history is too long, it takes only what belongs to operations in flight.
func (r *run) issue(ctx workflow.Context) {
	if r.saver.failed != nil {
		// No step may start that cannot be saved. For the core that is a cancel; finish reports the cause.
		r.handle(engine.Cancelled{})
	}
	take := r.core.Ready
	if r.quiescing(ctx) {
		take = r.core.Urgent
	}
	var plans []engine.Plan
	for ready := take(); !ready.Empty(); ready = take() {
		r.saver.add(ready.Changes, ready.Events...)
		r.outbox.add(ready.Replies...)
		for _, c := range ready.Start {
			switch c := c.(type) {
			case engine.Plan:
				plans = append(plans, c)
			case engine.Cascade:
				r.start(ctx, r.cascadeCall(c))
			case engine.Compare:
				r.start(ctx, r.compareCall(c))
			case engine.Step:
				if c.Kind == engine.StepRefresh && r.in.Goal.ReadAhead > 0 && c.Timeout == 0 {
					r.toRefresh = append(r.toRefresh, c)
				} else {
					r.start(ctx, r.stepCall(c))
				}
			case engine.Hook:
				r.start(ctx, r.hookCall(c))
			case engine.AnalyzeStack:
				r.analyzeStack(ctx, c)
			case engine.Settle:
				r.start(ctx, r.settleCall(c))
			case engine.Pause:
				r.pause(ctx, c)
			case engine.Abandon:
				r.abandon(c.Op)
			}
		}
	}
	for _, c := range slices.Concat(r.planCalls(plans), r.refreshCalls(r.toRefresh)) {
		r.start(ctx, c)
	}
	for _, s := range r.notRefreshed {
		r.start(ctx, r.stepCall(s))
	}
	r.toRefresh, r.notRefreshed = nil, nil
}

// start begins a call, unless its worker may be lost; then the call waits for a message from the Update.
func (r *run) start(ctx workflow.Context, c call) {
	if r.suspect == r.in.Worker {
		r.waitingForWorker = append(r.waitingForWorker, c)
		return
	}
	r.flights = append(r.flights, c.start(ctx, r.in.Worker))
}

// pausing is a pause that the core has asked for.
type pausing struct {
	op     int
	timer  workflow.Future
	cancel workflow.CancelFunc
}

// pause waits for the core.
func (r *run) pause(ctx workflow.Context, p engine.Pause) {
	ctx, cancel := workflow.WithCancel(ctx)
	d := time.Duration(p.Seconds * float64(time.Second))
	name := snapshot.NameOf(p.URN)
	summary := clip(fmt.Sprintf("%s %s is not ready: it waits for %s", p.Type, name, p.For), summaryBytes)
	r.pauses = append(r.pauses, pausing{
		op: p.Op, timer: workflow.NewTimerWithOptions(ctx, d, workflow.TimerOptions{Summary: summary}), cancel: cancel,
	})
}

// endPauses tells the core of the pauses that are over.
func (r *run) endPauses() {
	r.pauses = slices.DeleteFunc(r.pauses, func(p pausing) bool {
		over := p.timer.IsReady()
		if over {
			p.cancel()
			r.handle(engine.PauseEnded{Op: p.op})
		}
		return over
	})
}

// abandon cancels a pause, a step, the settling of one, or an analysis. A call that waits for a worker ends at once.
func (r *run) abandon(op int) {
	r.pauses = slices.DeleteFunc(r.pauses, func(p pausing) bool {
		if p.op == op {
			p.cancel()
		}
		return p.op == op
	})
	for _, f := range r.flights {
		if slices.Contains(f.ops, op) {
			f.cancel()
		}
	}
	waiting := r.waitingForWorker[:0]
	for _, c := range r.waitingForWorker {
		if !slices.Contains(c.ops, op) {
			waiting = append(waiting, c)
			continue
		}
		// A group of refreshes goes on without those that were abandoned.
		if c.ops = slices.DeleteFunc(c.ops, func(o int) bool { return o == op }); len(c.ops) > 0 {
			waiting = append(waiting, c)
		}
		if in, ok := c.input.(deployments.HookInput); ok {
			r.handle(hookLost(in.Hook, errors.New("it was cancelled")))
			continue
		}
		switch c.name {
		case deployments.ActivityAnalyzeStack:
			r.handle(engine.StackAnalyzed{Op: op, Error: "it was cancelled"})
			continue
		case deployments.ActivityPlanResources:
			r.handle(engine.Planned{Op: op, Error: "it was cancelled"})
			continue
		}
		outcome := engine.OutcomeCancelled
		if c.name == deployments.ActivitySettle {
			outcome = engine.OutcomeUndecidable
		}
		r.recordOutcome(op, outcome)
		r.handle(engine.StepFinished{Op: op, Outcome: outcome, Error: "it was cancelled"})
	}
	r.waitingForWorker = waiting
	r.abandonRefresh(op)
}

// reportWorkerLost asks the Update, once, whether the worker is still there.
func (r *run) reportWorkerLost(ctx workflow.Context) {
	if r.suspect != r.in.Worker {
		r.suspect = r.in.Worker
		r.signalUpdate(ctx, deployments.SignalLost, deployments.WorkerLost{Worker: r.in.Worker})
	}
}

// startWaiting starts the calls that wait for a worker, if there is one now.
func (r *run) startWaiting(ctx workflow.Context) {
	waiting := r.waitingForWorker
	r.waitingForWorker = nil
	for _, c := range waiting {
		r.start(ctx, c)
	}
}

// useWorker continues on another worker, or on the same one if it is alive.
func (r *run) useWorker(ctx workflow.Context, worker string) {
	r.in.Worker, r.suspect = worker, ""
	r.startWaiting(ctx)
}

// finish saves the rest, or leaves that to the commit, and answers all polls. A Run that could not save all changes of
// the state ends without a result: its stack takes them from the history.
func (r *run) finish(ctx workflow.Context, result engine.Result) (deployments.RunOutput, error) {
	r.closing, r.outbox.closed = true, true
	rest, failed := r.saver.finalSave(ctx)
	if failed != nil {
		result.Status, result.Error = engine.StatusFailed, "the state could not be saved: "+messageOf(failed)
	}
	err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
	for r.hasInput() && err == nil {
		r.receive(ctx) // what the program sent last
	}
	if err == nil && r.saver.lost() {
		return deployments.RunOutput{}, temporal.NewNonRetryableApplicationError(result.Error, string(codeOf(failed)),
			nil)
	}
	out := deployments.RunOutput{Result: result, Saves: r.saver.made(), LastSave: rest}
	if err == nil {
		err = r.endError(ctx, out)
	}
	return out, err
}
