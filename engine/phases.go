package engine

import (
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
)

// phase is where an update stands. Its number stands in suspended runs.
//
//	phase       begins when                            ends when
//	settling    the update starts                      every unknown outcome of earlier updates is settled or, if a
//	                                                   program follows, waits for a person
//	refreshing  settling has ended                     every read has ended; what is gone leaves the snapshot at once
//	program     refreshing has ended                   the program has exited, or waits for its hooks, and every
//	                                                   registration is done
//	deleting    the program ended well; at once for    every deletion has ended, or, of a refresh with a program,
//	            kinds without a program                every read of what that did not register
//	ended       nothing more will happen, or an error
//	            forbids deletions
//
// Invariant: phases only move forward, but for an epoch that begins while deletions go on: the program that waited for
// their hooks was lost. Without such a program an epoch can begin up to phaseProgram.
type phase int

const (
	phaseSettling   phase = iota // settle what earlier updates left undecided
	phaseRefreshing              // read what is stored
	phaseProgram                 // decide registrations
	phaseDeleting                // delete what the program no longer declares
	phaseEnded
)

// advance moves entries, deletions and phases on by one pass; it reports whether anything moved. Ready calls it until
// nothing moves.
func (r *Run) advance() bool {
	moved := false
	switch r.Phase {
	case phaseSettling, phaseRefreshing:
		moved = r.advanceOpening()
	case phaseProgram:
		moved = r.advanceEntries()
		moved = r.advanceDeletions() || moved
		moved = r.advanceProgram() || moved
	case phaseDeleting:
		moved = r.advanceDeletions()
		if !moved && r.idle() {
			if moved = r.breakCycle(); !moved {
				r.removeLost()
				if moved = true; !r.analyzeStack() {
					r.end()
				}
			}
		}
	}
	return moved
}

// advanceOpening goes through the phases that precede every decision, so that decisions are made over a state that has
// been confirmed: settling, then refreshing. Creates that wait for a person do not hold a program up.
//
// Without a program there is nothing that could go on beside a create that waits, so the phase waits for the person.
func (r *Run) advanceOpening() bool {
	if !r.idle() && !r.onlyWaiting() {
		return false
	}
	if r.Phase == phaseSettling {
		if !r.idle() && !r.hasProgram() {
			return false
		}
		r.Phase = phaseRefreshing
		if !r.Stopped && r.goal.Kind != KindImport && !r.refreshesAlong() {
			r.startRefreshes(r.goal.Refresh || r.goal.Kind == KindRefresh)
		}
		return true
	}
	r.removeLost()
	r.Phase = phaseProgram
	if r.goal.Kind == KindRefresh && !r.hasProgram() {
		r.Phase = phaseDeleting // without marking anything for deletion
	}
	return true
}

// advanceProgram ends the program's phase once the program has exited and everything that it asked for has ended.
// Nothing is deleted after an error, a refused request or a target that names nothing: what the program did not get to
// declare would be taken for undeclared.
//
// The outputs of the stack are recorded before the deletions and whatever the result, because exportOutputs itself
// knows when they are incomplete. A kind without a program passes through this phase at once.
func (r *Run) advanceProgram() bool {
	if r.hasProgram() && r.Exit == nil && r.Waits == nil && !r.abandoned() {
		return false
	}
	if !r.idle() || r.undecided() {
		return false
	}
	goesOn := !r.Stopped && r.Refusals == 0 && (r.FirstError == "" || r.goal.ContinueOnError)
	if r.goal.Kind == KindUp && goesOn && r.unbind() {
		return true
	}
	unmatched := r.hasProgram() && !r.Stopped && r.failUnmatched()
	r.exportOutputs()
	if r.Stopped || r.Refusals > 0 || unmatched || (r.Exit != nil && r.Exit.Error != "") ||
		(r.FirstError != "" && !r.goal.ContinueOnError) {
		r.end()
		return true
	}
	r.Phase = phaseDeleting
	switch r.goal.Kind {
	case KindUp, KindDestroy:
		r.deleteUnregistered()
	case KindRefresh:
		r.startRefreshes(true)
	default: // no other kind deletes
	}
	return true
}

// end closes the update. What its steps have done is always kept: a snapshot that breaks an invariant fails the update
// and is committed nevertheless, with the error.
//
// Every state has been checked as it was changed; Verify checks the whole once more, because a change can also break an
// invariant of a state that was not changed, for example by removing what that refers to. A preview has states without
// ids, which Verify would report.
func (r *Run) end() {
	r.Phase = phaseEnded
	r.dismiss()
	if r.goal.DryRun {
		return
	}
	if r.snap.HasRenames() {
		r.renameUnregistered()
	}
	states, _ := r.snap.States()
	if err := snapshot.Verify(states); err != nil {
		r.Integrity = err.Error()
		r.noteError(integrityMessage(err.Error()))
	}
}

// idle reports that no operation is in flight or waits for a slot.
func (r *Run) idle() bool { return len(r.Ops) == 0 }

// onlyWaiting reports that everything in flight waits for a person.
func (r *Run) onlyWaiting() bool { return len(r.Ops) == len(r.Waiting) }

// abandoned reports that the update was cancelled before its program ever started.
func (r *Run) abandoned() bool { return r.Cancelled && r.Epoch == 0 }

// undecided reports that an entry has not ended. Every one does at last: it waits only for operations, for deletions,
// or for entries that were registered before it.
func (r *Run) undecided() bool {
	return slices.ContainsFunc(r.Entries, func(e *entry) bool { return e.Stage != stageDone })
}
