package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// hold is the attempt to reach a quiet moment by starting nothing new. It is given up when something slow is in
// flight, and taken up for good when the history is full.
type hold struct {
	timer   workflow.Future // until it is given up; nil before it began
	givenUp bool
}

// over reports that the time has come to give up.
func (h *hold) over() bool { return h.timer != nil && !h.givenUp && h.timer.IsReady() }

// weight is how full a run's history is.
type weight int

const (
	light weight = iota
	soft         // continue as new at the next quiet moment
	hard         // seek one
	full         // nothing more may be added
)

func weigh(events, bytes, polls int, suggested bool) weight {
	switch {
	case events >= fullEvents || bytes >= fullBytes || polls >= fullPolls:
		return full
	case events >= hardEvents || polls >= hardPolls:
		return hard
	case events >= softEvents || polls >= softPolls || suggested:
		return soft
	}
	return light
}

func (r *run) weight(ctx workflow.Context) weight {
	info := workflow.GetInfo(ctx)
	if n := r.in.ForceContinue; n > 0 && r.handled >= n {
		return soft
	}
	return weigh(info.GetCurrentHistoryLength(), info.GetCurrentHistorySize(), r.polls, info.GetContinueAsNewSuggested())
}

// mayContinue reports that the history is long and that nothing is in flight.
func (r *run) mayContinue(ctx workflow.Context) bool {
	if len(r.flights)+len(r.parked)+r.core.InFlight() > 0 {
		return false
	}
	if _, ended := r.core.Result(); ended {
		return false
	}
	return r.weight(ctx) >= soft
}

// holding reports that nothing new may start.
func (r *run) holding(ctx workflow.Context) bool {
	w := r.weight(ctx)
	if len(r.flights)+len(r.parked) == 0 && r.core.InFlight() > 0 {
		return false // the core has something under way that is only waiting to be started again
	}
	if w == hard && r.hold.timer == nil {
		r.hold.timer = workflow.NewTimerWithOptions(ctx, holdFor, workflow.TimerOptions{Summary: "wait for a quiet moment"})
	}
	if r.hold.over() {
		r.hold.givenUp = true
	}
	return w == full || w == hard && !r.hold.givenUp
}

// continueAsNew puts the core away. Nothing is in flight; what is unsaved is saved, polls are answered, and every
// signal that has arrived is in the core or in the input of the next run: one left in its channel would be lost.
func (r *run) continueAsNew(ctx workflow.Context) error {
	r.closing = true
	for {
		r.receive(ctx)
		r.saver.add(r.core.Deltas())
		if !r.saver.unsaved() && r.saver.flight == nil && workflow.AllHandlersFinished(ctx) {
			break
		}
		// A failed save is the core's business after the next start, where it fails again.
		if err := r.saver.flush(ctx); err != nil {
			workflow.GetLogger(ctx).Warn("cannot save", "error", err)
		}
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
	}
	suspended, err := r.core.Suspend()
	if err != nil {
		return err
	}
	in := r.in
	in.Suspended = suspended
	in.Epoch, in.Received, in.Held = r.inbox.epoch, r.inbox.received, r.inbox.held
	in.Replies, in.Cursor, in.Ended = r.outbox.replies, r.outbox.acked, r.outbox.ended
	in.Saves = r.saver.number
	return workflow.NewContinueAsNewError(ctx, deployments.WorkflowRun, in)
}

// steps counts what the update has done so far.
func (r *run) steps() int {
	done, n := r.core.Progress().Done, 0
	for _, kind := range shownKinds {
		n += done[string(kind)]
	}
	return n
}

// shownKinds are the changes that are counted for people, in the order of their display.
var shownKinds = []engine.StepKind{
	engine.StepCreate, engine.StepUpdate, engine.StepReplace, engine.StepDelete, engine.StepRead, engine.StepRefresh,
	engine.StepImport,
}
