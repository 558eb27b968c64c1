package workflows

import (
	"encoding/json"
	"fmt"
	"slices"

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

// heft is how much a run's history holds.
type heft struct{ events, bytes int }

func heftOf(ctx workflow.Context) heft {
	info := workflow.GetInfo(ctx)
	return heft{info.GetCurrentHistoryLength(), info.GetCurrentHistorySize()}
}

// weight is how full a run's history is.
type weight int

const (
	light weight = iota
	soft         // continue as new at the next quiet moment
	hard         // seek one
	full         // nothing more may be added
)

// weigh compares what a history holds with what it held when the run had opened its core. A run that is large from its
// start goes on until it is as large again: otherwise it would continue as new for ever.
func weigh(now, opened heft, polls int) weight {
	switch {
	case now.events >= fullEvents || now.bytes >= fullBytes || polls >= fullPolls:
		return full
	case now.events >= max(hardEvents, 3*opened.events) || now.bytes >= max(hardBytes, 3*opened.bytes) ||
		polls >= hardPolls:
		return hard
	case now.events >= max(softEvents, 2*opened.events) || now.bytes >= max(softBytes, 2*opened.bytes) ||
		polls >= softPolls:
		return soft
	}
	return light
}

func (r *run) weight(ctx workflow.Context) weight {
	if n := r.in.ForceContinue; n > 0 && r.handled >= n {
		return soft
	}
	return weigh(heftOf(ctx), r.opened, r.polls)
}

// mayContinue reports that the history is long, that nothing is in flight, and that the program has taken most of its
// replies, for the rest is carried along.
func (r *run) mayContinue(ctx workflow.Context) bool {
	if len(r.flights)+len(r.parked)+r.core.InFlight() > 0 {
		return false
	}
	if _, ended := r.core.Result(); ended || r.saver.failed != nil {
		return false
	}
	return r.weight(ctx) >= soft && r.outbox.size() <= asideBytes
}

// holding reports that nothing new may start. What a core that has stopped still gives out ends things.
func (r *run) holding(ctx workflow.Context) bool {
	if r.hold.over() {
		r.hold.givenUp = true
	}
	w := r.weight(ctx)
	if w == hard && r.hold.timer == nil {
		r.hold.timer = workflow.NewTimerWithOptions(ctx, holdFor, workflow.TimerOptions{
			Summary: "wait for a quiet moment"})
	}
	return !r.core.Stopped && (w == full || w == hard && !r.hold.givenUp)
}

// continueAsNew puts the core away. Nothing is in flight, and what is unsaved is saved before. What is heard from then
// on is in the input of the next run: what is left in a signal's channel would be lost. If it is too much for that, the
// core hears it, and is put away once more. It gives nil when something turned up that is to be done first.
func (r *run) continueAsNew(ctx workflow.Context) error {
	if err := wasReset(ctx); err != nil {
		return err
	}
	for n := 1; ; n++ {
		if r.save(ctx); !r.mayContinue(ctx) {
			return nil
		}
		in, err := r.next(ctx, n)
		if err != nil {
			return err
		}
		r.closing = true
		if err := workflow.Await(ctx, func() bool {
			return workflow.AllHandlersFinished(ctx) &&
				r.told()
		}); err != nil {
			return err
		}
		in.Late = r.unheard()
		late, err := json.Marshal(in.Late)
		if err != nil {
			return err
		}
		if len(late) <= asideBytes {
			in.Epoch, in.Received, in.Held = r.inbox.epoch, r.inbox.received, r.inbox.held
			in.Replies, in.Cursor, in.Ended = r.outbox.replies, r.outbox.acked, r.outbox.ended
			return workflow.NewContinueAsNewError(ctx, deployments.WorkflowRun, in)
		}
		r.closing = false
		r.catchUp(ctx, in.Late)
	}
}

// save hears what has arrived, and makes everything durable.
func (r *run) save(ctx workflow.Context) {
	for {
		r.receive(ctx)
		r.saver.add(r.core.TakeChanges())
		if r.saver.flight == nil && !r.saver.unsaved() {
			return
		}
		if err := r.saver.flush(ctx); err != nil {
			workflow.GetLogger(ctx).Warn("cannot save", "error", err)
		}
	}
}

// next is the input of the next run, with the core as it stands.
func (r *run) next(ctx workflow.Context, nth int) (in deployments.RunInput, err error) {
	in = r.in
	in.Saves, in.Aside = r.saver.number, nil
	if in.Suspended, err = r.core.Suspend(); err == nil && len(in.Suspended) > asideBytes {
		in.Aside, err = r.putAside(ctx, nth, in.Suspended)
		in.Suspended = nil
	}
	return in, err
}

// putAside stores a core that is too large for an input.
func (r *run) putAside(ctx workflow.Context, nth int, core []byte) (*deployments.Aside, error) {
	a := &deployments.Aside{Name: fmt.Sprintf("%s-%d", workflow.GetInfo(ctx).WorkflowExecution.RunID, nth)}
	for part := range slices.Chunk(core, asideBytes) {
		in := deployments.AsidePart{Update: r.in.Update, Name: a.Name, Part: a.Parts, Data: part}
		if err := workflow.ExecuteActivity(onShared(ctx, "put the state of the run away"), deployments.ActivityPutAside,
			in).Get(ctx, nil); err != nil {
			return nil, err
		}
		a.Parts++
	}
	return a, nil
}

// takeUp gives what putAside has stored.
func (r *run) takeUp(ctx workflow.Context, a deployments.Aside) (core []byte, err error) {
	for n := range a.Parts {
		var part []byte
		in := deployments.AsidePart{Update: r.in.Update, Name: a.Name, Part: n}
		if err := workflow.ExecuteActivity(onShared(ctx, "take the state of the run up"), deployments.ActivityTakeUp,
			in).Get(ctx, &part); err != nil {
			return nil, err
		}
		core = append(core, part...)
	}
	return core, nil
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
	engine.StepImport, engine.CountRetained,
}
