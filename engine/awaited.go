package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/engine/snapshot"
)

// What a step has made may be usable later: an address is assigned, a certificate issued. Its provider then says what
// is awaited, and when to look again. The state is recorded at once, so that nothing is lost; the program gets its
// reply, and with it everything that depends on the resource goes on, when the resource is ready.
//
//	step           done, and not ready: recorded with what is awaited as an initialisation error
//	pause          a timer of the driver; the operation holds no slot
//	step, again    an update with the same inputs, in which the provider looks: ready, or not yet
//
// An update that ends meanwhile leaves the initialisation error, and the next one looks again.

// Awaited is what the result of a step says of a resource that exists and is not ready.
type Awaited struct {
	For   string  `json:"for"`   // in words: "an address"
	After float64 `json:"after"` // seconds until it is to be looked at again
}

// A pause is what the provider asks for within these bounds, and at least a part of what was waited before, so that the
// looks become few whatever it asks for. All pauses of a resource without customTimeouts together take readyWithin. In
// seconds.
const (
	shortestPause, longestPause = 0.1, 60
	leastPart                   = 0.1
	readyWithin                 = 600
)

// awaiting is that an operation looks at a resource which was not ready.
type awaiting struct {
	Awaited
	Waited float64 // seconds, all pauses that have ended together
}

// await looks at an entry's resource again, after a pause. The operation is another one: that of the step has ended.
// For an entry of an earlier epoch nobody waits any more: the program that is running now registers the resource, and
// that looks at it.
func (r *Run) await(e *entry, waited float64) {
	if e.Epoch != r.Epoch {
		r.become(e, stageDone, 0)
		return
	}
	next := e.New
	next.InitErrors = nil
	step := &Step{
		Op: r.newOp(), Kind: StepUpdate, URN: e.URN, Type: e.New.Type, Provider: r.providerFor(&e.New), Seed: e.Seed,
		Old: r.reference(e.New.Key), New: &next, Timeout: e.timeout(), Views: r.viewStates(e.New.Key),
		Await: true,
	}
	a := *e.Awaited
	if !(a.After >= shortestPause) { // also if it is no number
		a.After = shortestPause
	}
	a.After = math.Round(1000*min(max(a.After, leastPart*waited), longestPause)) / 1000
	e.Awaited = nil
	op := &operation{Op: step.Op, URN: e.URN, Step: step, Entry: e, For: forGoal, Awaits: &awaiting{a, waited}}
	r.Ops[op.Op] = op
	r.Paused = append(r.Paused, op.Op)
	r.become(e, stageStepping, op.Op)
	if waited == 0 {
		r.diagnose("info", e.URN, "%s exists, and is not ready: it waits for %s", snapshot.NameOf(e.URN), a.For)
	}
	r.ready.Start = append(r.ready.Start, Pause{Op: op.Op, URN: e.URN, Type: e.New.Type, Seconds: a.After, For: a.For})
}

// pauseEnded queues the step that looks again.
func (r *Run) pauseEnded(ev PauseEnded) {
	i := slices.Index(r.Paused, ev.Op)
	if i < 0 {
		return
	}
	r.Paused = slices.Delete(r.Paused, i, i+1)
	op := r.Ops[ev.Op]
	op.Awaits.Waited += op.Awaits.After
	r.Queue = append(r.Queue, ev.Op)
}

// looked takes the result of a step that has looked again. What it found is recorded as an update; it is not shown as a
// step of its own.
func (r *Run) looked(op *operation, ev StepFinished) {
	e, w := op.Entry, op.Awaits
	if ev.Outcome == OutcomeDone || ev.Outcome == OutcomePartial {
		kind := e.Kind
		e.Kind, e.Old = StepUpdate, e.New.Key
		r.applyResult(e, ev)
		r.record(e, op.Op)
		e.Kind = kind
		r.recordViews(op, e.New.Key, ev.Views)
	}
	limit := op.Step.Timeout
	if limit == 0 {
		limit = readyWithin
	}
	switch {
	case ev.Outcome == OutcomeDone && ev.Awaited == nil:
		r.diagnose("info", e.URN, "%s is ready", snapshot.NameOf(e.URN))
		r.done(e, e.stables())
	case ev.Outcome == OutcomeDone && w.Waited < limit && !r.Stopped:
		e.Awaited = ev.Awaited
		r.await(e, w.Waited)
	case ev.Outcome == OutcomeCancelled || ev.Outcome == OutcomeAbsent || r.Stopped:
		r.leaveAwaited(e, w)
	case ev.Outcome == OutcomeDone:
		r.neverReady(e, fmt.Sprintf("%s was not ready within %v s: it still waits for %s. The next update looks again; "+
			"the option customTimeouts gives it more time", e.URN, w.Waited, ev.Awaited.For))
	case ev.Outcome == OutcomePartial:
		r.neverReady(e, fmt.Sprintf("%s exists, and did not become ready: %s", e.URN, strings.Join(ev.InitErrors, "; ")))
	default:
		r.neverReady(e, fmt.Sprintf("%s exists, and could not be looked at while it waits for %s: %s", e.URN, w.For,
			ev.told(op.Step)))
	}
}

// neverReady fails an entry whose resource exists and is not ready.
func (r *Run) neverReady(e *entry, message string) {
	r.diagnose("error", e.URN, "%s", message)
	r.failEntry(e, message)
}

// leaveAwaited ends an entry whose resource is not ready in an update that is ending.
func (r *Run) leaveAwaited(e *entry, w *awaiting) {
	r.diagnose("warning", e.URN, "%s exists, and is not ready: it still waits for %s; the next update looks again", e.URN,
		w.For)
	r.finish(e, Reply{Result: ResultFail, Error: updateEnds})
}

// leavePaused ends the entries that wait for a pause, in an update that is ending.
func (r *Run) leavePaused() {
	for _, n := range r.dropPaused() {
		r.leaveAwaited(n.Entry, n.Awaits)
	}
}

// dropPaused forgets the operations that wait for a pause, and returns them. Nothing is answered to their pauses.
func (r *Run) dropPaused() (dropped []*operation) {
	for _, n := range r.Paused {
		dropped = append(dropped, r.Ops[n])
		r.ready.Start = append(r.ready.Start, Abandon{Op: n})
		delete(r.Ops, n)
	}
	r.Paused = nil
	return dropped
}
