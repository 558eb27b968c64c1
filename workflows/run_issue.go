package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// issue starts what the core says may start.
func (r *run) issue(ctx workflow.Context) {
	if r.saver.failed != nil {
		r.handle(engine.Cancelled{}) // what cannot be kept must not be begun
	}
	take := r.core.Ready
	if r.holding(ctx) {
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
				r.start(ctx, r.cascade(c))
			case engine.Compare:
				r.start(ctx, r.compare(c))
			case engine.Step:
				r.start(ctx, r.step(c))
			case engine.Settle:
				r.start(ctx, r.settle(c))
			case engine.Abandon:
				r.abandon(c.Op)
			}
		}
	}
	for _, c := range r.plans(plans) {
		r.start(ctx, c)
	}
}

// start begins a call, unless its worker seems to be lost; then it waits for word from the Update.
func (r *run) start(ctx workflow.Context, c call) {
	if r.accused == r.in.Worker {
		r.parked = append(r.parked, c)
		return
	}
	r.flights = append(r.flights, c.start(ctx, r.in.Worker))
}

// abandon cancels a step, or the settling of one; what waits for a worker is answered at once.
func (r *run) abandon(op int) {
	for _, f := range r.flights {
		if f.op == op {
			f.cancel()
		}
	}
	waiting := r.parked[:0]
	for _, c := range r.parked {
		if c.op != op {
			waiting = append(waiting, c)
			continue
		}
		outcome := engine.OutcomeCancelled
		if c.name == deployments.ActivitySettle {
			outcome = engine.OutcomeUndecidable
		}
		r.decide(op, outcome)
		r.handle(engine.StepFinished{Op: op, Outcome: outcome, Error: "it was cancelled"})
	}
	r.parked = waiting
}

// accuse asks the Update, once, whether the worker is still there.
func (r *run) accuse(ctx workflow.Context) {
	if r.accused != r.in.Worker {
		r.accused = r.in.Worker
		r.tell(ctx, deployments.SignalLost, deployments.WorkerLost{Worker: r.in.Worker})
	}
}

// launch starts what is parked, unless there is still no worker.
func (r *run) launch(ctx workflow.Context) {
	parked := r.parked
	r.parked = nil
	for _, c := range parked {
		r.start(ctx, c)
	}
}

// move goes to another worker, or back to the one that is alive after all.
func (r *run) move(ctx workflow.Context, worker string) {
	r.in.Worker, r.accused = worker, ""
	r.launch(ctx)
}

// finish saves what is left, or hands it over, and lets everyone who waits know.
func (r *run) finish(ctx workflow.Context, result engine.Result) (deployments.RunOutput, error) {
	r.closing, r.outbox.closed = true, true
	rest, err := r.saver.last(ctx)
	if err != nil {
		result.Status, result.Error = engine.StatusFailed, "the state could not be saved: "+sentence(err)
	}
	err = workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
	for r.signalled() && err == nil {
		r.receive(ctx) // the program's last words, after the end
	}
	out := deployments.RunOutput{Result: result, Saves: r.saver.number, Rest: rest}
	if err == nil {
		err = r.ended(ctx, out)
	}
	return out, err
}
