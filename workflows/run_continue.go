package workflows

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// quiesce starts nothing new until no operation is in flight. It gives up after quiesceFor if an operation takes
// longer, unless the history is full.
type quiesce struct {
	timer   workflow.Future // until it gives up; nil before it began
	givenUp bool
}

// expired reports whether it is time to give up.
func (h *quiesce) expired() bool { return h.timer != nil && !h.givenUp && h.timer.IsReady() }

// historySize is the size of a run's history.
type historySize struct{ events, bytes int }

func historySizeOf(ctx workflow.Context) historySize {
	info := workflow.GetInfo(ctx)
	return historySize{info.GetCurrentHistoryLength(), info.GetCurrentHistorySize()}
}

// pressure says how full a run's history is.
type pressure int

const (
	pressureNone pressure = iota
	pressureSoft          // continue as new when nothing is in flight
	pressureHard          // quiesce
	pressureFull          // nothing may be added
)

// pressureOf compares the size of a history with its size when the core was loaded. The limits of a run that starts
// with a large history are multiples of that size: otherwise it would continue as new forever.
func pressureOf(now, initial historySize, polls int) pressure {
	switch {
	case now.events >= fullEvents || now.bytes >= fullBytes || polls >= fullPolls:
		return pressureFull
	case now.events >= max(hardEvents, 3*initial.events) || now.bytes >= max(hardBytes, 3*initial.bytes) ||
		polls >= hardPolls:
		return pressureHard
	case now.events >= max(softEvents, 2*initial.events) || now.bytes >= max(softBytes, 2*initial.bytes) ||
		polls >= softPolls:
		return pressureSoft
	}
	return pressureNone
}

func (r *run) pressure(ctx workflow.Context) pressure {
	if n := r.in.ForceContinue; n > 0 && r.handled >= n {
		return pressureSoft
	}
	return pressureOf(historySizeOf(ctx), r.initialSize, r.polls)
}

// mayContinue reports whether the history is long, nothing is in flight, and the program has acknowledged most of its
// replies: the other replies are carried in the input.
func (r *run) mayContinue(ctx workflow.Context) bool {
	if len(r.flights)+len(r.waitingForWorker)+r.core.InFlight() > 0 {
		return false
	}
	if _, ended := r.core.Result(); ended || r.saver.failed != nil {
		return false
	}
	return r.pressure(ctx) >= pressureSoft && r.outbox.size() <= spillBytes
}

// quiescing reports whether nothing new may start. A core that has stopped only ends things, so it is never held back.
func (r *run) quiescing(ctx workflow.Context) bool {
	if r.quiesce.expired() {
		r.quiesce.givenUp = true
	}
	w := r.pressure(ctx)
	if w == pressureHard && r.quiesce.timer == nil {
		r.quiesce.timer = workflow.NewTimerWithOptions(ctx, quiesceFor, workflow.TimerOptions{
			Summary: "wait for a quiet moment"})
	}
	return !r.core.Stopped && (w == pressureFull || w == pressureHard && !r.quiesce.givenUp)
}

// continueAsNew suspends the core and returns the error that continues the run as new. Nothing is in flight, and
// everything is saved before. What arrives after that is carried in the input of the next run, because anything left in
// a signal channel would be lost. If it does not fit the input, the core handles it and is suspended again. nil means
// that new work arrived: do not continue as new yet.
func (r *run) continueAsNew(ctx workflow.Context) error {
	if err := resetError(ctx); err != nil {
		return err
	}
	for n := 1; ; n++ {
		if r.saveAll(ctx); !r.mayContinue(ctx) {
			return nil
		}
		in, err := r.nextInput(ctx, n)
		if err != nil {
			return err
		}
		r.closing = true
		if err := workflow.Await(ctx, func() bool {
			return workflow.AllHandlersFinished(ctx) &&
				r.signalsSent()
		}); err != nil {
			return err
		}
		in.Undelivered = r.drainSignals()
		late, err := json.Marshal(in.Undelivered)
		if err != nil {
			return err
		}
		if len(late) <= spillBytes {
			in.Epoch, in.Received, in.Early = r.inbox.epoch, r.inbox.received, r.inbox.early
			in.Replies, in.Cursor, in.Ended = r.outbox.replies, r.outbox.acked, r.outbox.ended
			return workflow.NewContinueAsNewError(ctx, deployments.WorkflowRun, in)
		}
		r.closing = false
		r.deliverAll(ctx, in.Undelivered)
	}
}

// saveAll delivers what has arrived and makes everything durable.
func (r *run) saveAll(ctx workflow.Context) {
	for {
		r.receive(ctx)
		r.saver.add(r.core.TakeChanges())
		if r.saver.flight == nil && !r.saver.unsaved() {
			return
		}
		if err := r.saver.flush(ctx); err != nil {
			workflow.GetLogger(ctx).Warn("cannot save", "error", err)
			return
		}
	}
}

// nextInput returns the input of the next run, with the suspended core.
func (r *run) nextInput(ctx workflow.Context, nth int) (in deployments.RunInput, err error) {
	in = r.in
	in.Saves, in.Spilled = r.saver.number, nil
	if in.Suspended, err = r.core.Suspend(); err == nil && len(in.Suspended) > spillBytes {
		name := fmt.Sprintf("%s-%d", workflow.GetInfo(ctx).WorkflowExecution.RunID, nth)
		in.Spilled, err = r.spill(ctx, name, in.Suspended)
		in.Suspended = nil
	}
	return in, err
}

// spill stores what is too large for an input, such as a suspended core.
func (r *run) spill(ctx workflow.Context, name string, data []byte) (*deployments.Spilled, error) {
	a := &deployments.Spilled{Name: name}
	for part := range slices.Chunk(data, spillBytes) {
		in := deployments.SpilledPart{Update: r.in.Update, Name: a.Name, Part: a.Parts, Data: part}
		if err := execute(onShared(ctx, fmt.Sprintf("store part %d of the core", a.Parts)), deployments.ActivitySpillPart,
			in).Get(ctx, nil); err != nil {
			return nil, err
		}
		a.Parts++
	}
	return a, nil
}

// loadSpilled returns the core that spill has stored.
func (r *run) loadSpilled(ctx workflow.Context, a deployments.Spilled) (core []byte, err error) {
	for n := range a.Parts {
		var part []byte
		in := deployments.SpilledPart{Update: r.in.Update, Name: a.Name, Part: n}
		if err := execute(onShared(ctx, fmt.Sprintf("load part %d of the core", n)), deployments.ActivityLoadSpilledPart,
			in).Get(ctx, &part); err != nil {
			return nil, err
		}
		core = append(core, part...)
	}
	return core, nil
}

// stepsDone returns how many changes the update has made so far.
func (r *run) stepsDone() int {
	done, n := r.core.Progress().Done, 0
	for _, kind := range countedKinds {
		n += done[string(kind)]
	}
	return n
}

// countedKinds are the kinds of changes that are shown with their counts, in this order.
var countedKinds = []engine.StepKind{
	engine.StepCreate, engine.StepUpdate, engine.StepReplace, engine.StepDelete, engine.StepRead, engine.StepRefresh,
	engine.StepImport, engine.CountRetained,
}
