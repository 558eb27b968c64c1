package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Run is one update in progress. It is not safe for concurrent use. Every method that takes an event may change any
// part of it; only Ready and Urgent hand work out.
//
// Its parts differ in how long they live. The goal is fixed. The snapshot and memory are the state of the update: they
// are suspended, and all else follows from them. The look-up tables are rebuilt by derive. The lists of what is
// runnable or free spare a search through all entries and deletions after each event.
type Run struct {
	goal Goal
	snap *snapshot.Snapshot
	memory

	snippets bool // an up of a stack that has resources of snippets, see snippets.go
	// What the options of the goal name, see setGoal.
	targets, excluded, replaced, takeover patterns
	had                                   map[urn.URN]bool // what the base has

	// Derived from memory, see derive.
	byURN      map[urn.URN]*entry // entries of this epoch
	bySeq      map[int]bool       // sequence numbers seen in this epoch
	deletionOf map[Key]*deletion
	repeated   map[urn.URN]*entry    // by resource: the entry that reconciles it again, see bindings.go
	bindings   map[urn.URN][]urn.URN // those that are stored, by the resource that they name

	// Needed only while something is in flight or Ready runs, so Suspend does not store it.
	runnable  []*entry // entries that may advance without an external event
	spare     []*entry // room for the next runnable
	openFrom  int      // entries before this one have ended
	cascading int      // the cascade being found
	sweeper   *entry   // the entry whose copies go first; see sweep
	comparing []int    // the comparisons being made
	free      []Key    // deletions that nothing blocks

	ready Ready // what Urgent takes
}

// New starts an update from the stored states and pending operations of its base. An update that cannot be carried out
// at all has ended when New returns: its diagnostics are in the first Ready, and Result says why it failed.
func New(goal Goal, base []State, pending []PendingOperation) *Run {
	r := &Run{
		snap: snapshot.New(base, pending),
		memory: memory{
			Ops: map[int]*operation{}, Compared: map[string]bool{}, Changes: map[string]int{},
			marks: map[urn.URN]*mark{},
		},
	}
	r.setGoal(goal)
	// The order: marks and look-up tables exist before anything is diagnosed or decided, a refused update has no effect on
	// the snapshot, and pending creates are settled with the providers that giveDefaults has recorded.
	r.resetEpoch()
	if !r.accept(base, pending) {
		r.Phase = phaseEnded
		return r
	}
	r.giveDefaults()
	r.settlePending()
	return r
}

// setGoal gives the Run its goal, and compiles the patterns in it. The Run has its base.
func (r *Run) setGoal(goal Goal) {
	goal.Parallel = max(goal.Parallel, 1)
	r.goal = goal
	r.snippets = false
	r.targets, r.excluded, r.replaced = compile(goal.Targets), compile(goal.Excludes), compile(goal.Replace)
	r.takeover = compile(goal.Adopt)
	r.had = map[urn.URN]bool{}
	for i := range r.snap.BaseLen() {
		s := r.snap.BaseAt(i)
		r.had[s.URN] = r.had[s.URN] || !s.External
		r.snippets = r.snippets || goal.Kind == KindUp && s.Snippet != ""
	}
}

// accept refuses an update that cannot be carried out at all, with a diagnostic that says why. It reports whether the
// update may start. An unknown kind is refused because what a kind does not declare would be deleted. A state that
// breaks an invariant is refused because every decision relies on them, above all on the order.
func (r *Run) accept(base []State, pending []PendingOperation) bool {
	switch err := errors.Join(snapshot.Verify(base), snapshot.VerifyPending(pending)); {
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
	if r.refuseDeleteHooks(base) {
		return false
	}
	return r.goal.Kind == KindImport || !r.refuseUnmatched()
}

// hasProgram reports whether a program takes part in the update, or the host in the place of one. Only then are there
// epochs and registrations.
func (r *Run) hasProgram() bool { return r.goal.Kind == KindUp || r.adopts() || r.goal.RunProgram }

// Handle applies an event. It starts nothing: Ready does. It never fails: what cannot be right is reported as a
// diagnostic, refused by a Reply or, if it is old or repeated, ignored. So a driver may deliver an event twice, with
// one exception: a StepFinished that does not end its operation, see stepFinished, leads to another command each time.
//
// A command that has become pointless since it was returned must be completed all the same; its result is ignored then.
// Call Ready after each event, or after all that arrived together.
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
	case StackAnalyzed:
		r.stackAnalyzed(ev)
	case PauseEnded:
		r.pauseEnded(ev)
	case HookFinished:
		r.hookFinished(ev)
	case ProgramWaits:
		r.programWaits(ev)
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

// Ready advances everything that can advance and returns the work that follows. Call it until it returns nothing: a
// change that breaks an invariant stops the update only at the next call.
//
// Order: entries advance in order of registration, then deletions in the order in which they were freed, then steps get
// free slots in the order of the queue. Replays depend on it.
//
// More than one pass may be needed, because what one entry does can let an earlier one advance; each pass begins with
// the first entry again. The passes end, because an entry or a deletion moves a bounded number of times without an
// event.
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

// Urgent returns only what events have led to by themselves: commands for operations in flight (settles and repeated
// steps), changes, replies and output. It starts no new operation, so a driver that wants a quiet moment calls it
// instead of Ready.
func (r *Run) Urgent() Ready {
	out := r.ready
	r.ready = Ready{}
	if r.goal.DryRun {
		out.Changes = nil
	}
	return out
}

// TakeChanges returns the changes alone, so that they can be saved before Suspend; Suspend stores what else is ready.
// It starts nothing, so it may be called while the driver waits until nothing is in flight.
func (r *Run) TakeChanges() []Delta {
	rest := r.ready
	rest.Changes = nil
	out := r.Urgent().Changes
	r.ready = rest
	return out
}

// Snapshot returns the states in snapshot order, with renamed references, and the pending operations.
func (r *Run) Snapshot() ([]State, []PendingOperation) { return r.snap.States() }

// change applies a delta to the snapshot and records it for the driver. It is the only way in which the snapshot
// changes. The first state that breaks an invariant is remembered in Broken; what was done is recorded nevertheless.
// Adjacent keeps become one delta, because an unchanged stack consists of them.
func (r *Run) change(d Delta) {
	r.NextSeq++
	d.Seq = r.NextSeq
	r.snap.Apply(d)
	if d.State != nil {
		r.noteBinding(d.State)
	}
	if d.Kind == DeltaAlias {
		for _, u := range r.bindings[d.From] {
			if !slices.Contains(r.bindings[d.To], u) {
				r.bindings[d.To] = append(r.bindings[d.To], u)
			}
		}
	}
	if d.State != nil && r.Broken == "" && !r.goal.DryRun { // a preview's states have no ids
		r.Broken = r.snap.Flaw(d.State.Key)
	}
	if n := len(r.ready.Changes); n > 0 && d.Kind == DeltaKeep {
		if last := &r.ready.Changes[n-1]; last.Kind == DeltaKeep && last.First+last.Count == d.First {
			last.Count += d.Count
			return
		}
	}
	r.ready.Changes = append(r.ready.Changes, d)
}

// emit adds an event for people.
func (r *Run) emit(e Emit) { r.ready.Events = append(r.ready.Events, e) }

// diagnose reports a sentence about a URN ("" for the update as a whole).
func (r *Run) diagnose(severity string, u urn.URN, format string, args ...any) {
	if severity == "error" {
		r.About = u
	}
	r.emit(Emit{Kind: EmitDiagnostic, URN: u, Severity: severity, Message: fmt.Sprintf(format, args...)})
}
