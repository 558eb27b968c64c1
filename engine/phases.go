package engine

import "slices"

// phase is where an update stands. Phases only move forward.
type phase int

const (
	phaseSettling   phase = iota // what earlier updates left undecided
	phaseRefreshing              // reading what is stored
	phaseProgram                 // registrations are decided
	phaseDeleting                // what the program no longer declares goes
	phaseEnded
)

// advance moves entries and phases on; it reports whether anything moved.
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
				r.end()
				moved = true
			}
		}
	}
	return moved
}

// advanceOpening goes through what precedes every decision: settling what earlier updates left, then refreshing.
func (r *Run) advanceOpening() bool {
	if !r.idle() && !r.onlyWaiting() {
		return false
	}
	if r.Phase == phaseSettling {
		if !r.idle() && !r.hasProgram() {
			return false
		}
		r.Phase = phaseRefreshing
		if !r.Stopped && r.goal.Kind != KindImport {
			r.startRefreshes(r.goal.Refresh || r.goal.Kind == KindRefresh)
		}
		return true
	}
	r.removeLost()
	r.Phase = phaseProgram
	if r.goal.Kind == KindRefresh {
		r.Phase = phaseDeleting // without condemning anything
	}
	return true
}

// advanceProgram ends the program's phase once the program has ended and everything it asked for has, too.
func (r *Run) advanceProgram() bool {
	if r.hasProgram() && r.Exit == nil && !r.abandoned() {
		return false
	}
	if !r.idle() || r.undecided() {
		return false
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
	default: // no other kind deletes
	}
	return true
}

// end closes the update. What its steps have done is never thrown away: a snapshot that breaks an invariant is told of.
func (r *Run) end() {
	r.Phase = phaseEnded
	if r.goal.DryRun {
		return
	}
	states, _ := r.snap.States()
	if err := Verify(states); err != nil {
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

// undecided reports that an entry still waits for something that can happen.
func (r *Run) undecided() bool {
	return slices.ContainsFunc(r.Entries, func(e *entry) bool { return e.Stage != stageDone })
}
