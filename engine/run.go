package engine

import (
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Run is one update at work. It is not safe for concurrent use.
type Run struct {
	goal Goal
	snap *Snapshot
	memory

	// Derived from memory, see derive.
	byURN      map[urn.URN]*entry // entries of this epoch
	bySeq      map[int]bool       // sequence numbers seen in this epoch
	deletionOf map[Key]*deletion

	// Meaningful only while something is in flight or an answer is being worked out, so not put away.
	runnable  []*entry // entries that do not wait for an answer
	spare     []*entry // room for the next runnable
	openFrom  int      // entries before this one have ended
	cascading int      // the cascade being found
	sweeper   *entry   // the entry whose copies go first; see sweep
	comparing []int    // the comparisons being made
	free      []Key    // deletions that nothing blocks

	ready Ready // what Urgent takes
}

// New starts an update from the stored states and pending operations of its base.
func New(goal Goal, base []State, pending []PendingOperation) *Run {
	r := &Run{
		goal: goal,
		snap: NewSnapshot(base, pending),
		memory: memory{
			Ops: map[int]*operation{}, Compared: map[string]bool{}, Changes: map[string]int{},
			marks: map[urn.URN]*mark{},
		},
	}
	if r.goal.Parallel < 1 {
		r.goal.Parallel = 1
	}
	r.resetEpoch()
	if !r.accept(base, pending) {
		r.Phase = phaseEnded
		return r
	}
	r.giveDefaults()
	r.settlePending()
	return r
}

// accept reports whether the update can be carried out at all; if not, it has told why.
func (r *Run) accept(base []State, pending []PendingOperation) bool {
	switch err := errors.Join(Verify(base), VerifyPending(pending)); {
	case !r.goal.Kind.known():
		r.unsupported(fmt.Sprintf("the update kind %q", r.goal.Kind))
		return false
	case err != nil:
		message := "the stored state cannot be worked on: " + err.Error() +
			"; correct it with `deployctl stack export` and `deployctl stack import`"
		r.diagnose("error", "", "%s", message)
		r.noteError(message)
		return false
	}
	return r.goal.Kind == KindImport || !r.refuseUnmatched()
}

// hasProgram reports whether a program takes part in the update.
func (r *Run) hasProgram() bool { return r.goal.Kind == KindUp }

// Handle takes note of an event. It never fails: what cannot be right is reported as a diagnostic, refused by a Reply
// or, if it is old or repeated, ignored.
func (r *Run) Handle(ev Event) {
	switch ev := ev.(type) {
	case RunStarted:
		r.startEpoch(ev.Epoch)
	case Registered:
		r.register(ev)
	case ReadRequested:
		r.requestRead(ev)
	case OutputsRegistered:
		r.registerOutputs(ev)
	case ProgramExited:
		r.programExited(ev)
	case Planned:
		r.planned(ev)
	case CascadePlanned:
		r.cascadePlanned(ev)
	case ProviderDiffed:
		r.providerDiffed(ev)
	case StepFinished:
		r.stepFinished(ev)
	case Cancelled:
		r.cancelled(ev)
	case Resolved:
		r.resolved(ev)
	case Refused:
		r.refused(ev)
	default:
		r.unsupported(fmt.Sprintf("the event %T", ev))
	}
}

// Ready lets everything move that can, and takes what came of it. Call it until it returns nothing: what a change broke
// may stop the update.
func (r *Run) Ready() Ready {
	if r.Broken != "" && !r.Stopped { // what runs finishes, and what it does is recorded
		r.diagnose("error", "", "%s", integrityMessage(r.Broken))
		r.noteError(integrityMessage(r.Broken))
		r.stop()
	}
	for r.advance() {
	}
	r.issueSteps()
	return r.Urgent()
}

// Urgent takes what events have led to, and starts no new operation: its commands settle or repeat operations that are
// in flight.
func (r *Run) Urgent() Ready {
	out := r.ready
	r.ready = Ready{}
	if r.goal.DryRun {
		out.Changes = nil
	}
	return out
}

// TakeChanges takes the changes alone, so that they can be saved before Suspend, which keeps what else is ready.
func (r *Run) TakeChanges() []Delta {
	rest := r.ready
	rest.Changes = nil
	out := r.Urgent().Changes
	r.ready = rest
	return out
}

// Snapshot returns the states as they stand, in snapshot order, and the pending operations.
func (r *Run) Snapshot() ([]State, []PendingOperation) { return r.snap.States() }

// change applies a delta to the snapshot and records it.
func (r *Run) change(d Delta) {
	r.NextSeq++
	d.Seq = r.NextSeq
	r.snap.Apply(d)
	if d.State != nil && r.Broken == "" && !r.goal.DryRun { // a preview's states have no ids
		r.Broken = r.snap.flaw(d.State.Key)
	}
	if n := len(r.ready.Changes); n > 0 && d.Kind == DeltaKeep {
		if last := &r.ready.Changes[n-1]; last.Kind == DeltaKeep && last.First+last.Count == d.First {
			last.Count += d.Count
			return
		}
	}
	r.ready.Changes = append(r.ready.Changes, d)
}

// emit tells people something.
func (r *Run) emit(e Emit) { r.ready.Events = append(r.ready.Events, e) }

// diagnose reports a sentence about a URN ("" for the update as a whole).
func (r *Run) diagnose(severity string, u urn.URN, format string, args ...any) {
	r.emit(Emit{Kind: EmitDiagnostic, URN: u, Severity: severity, Message: fmt.Sprintf(format, args...)})
}
