package engine

import (
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// startRefreshes reads every stored resource that its provider manages, or only those that their providers want to be
// read before they are compared with their goals. The reads are queued steps that belong to no entry. They have a phase
// of their own before any decision, so what is decided is decided over what was read. Only a refresh with a program
// comes here after that, for what the program did not register.
//
// An update that only settles reads only those of which it is not known whether an earlier update changed them.
//
// A copy that waits for its deletion is read, too, because nothing is left to delete if it is gone already. What is
// pending its replacement is deleted, so it is not read. It goes through the states in snapshot order, as mayChange
// requires.
func (r *Run) startRefreshes(every bool) {
	r.snap.All(func(s *State) {
		if !every && !s.RefreshBeforeUpdate || !r.mayChange(s) || r.goal.Settle != nil && !r.marked(s.URN).Unsure {
			return
		}
		switch {
		case s.PendingReplacement || s.IsView():
			return
		case r.refreshesAlong() && r.byURN[r.current(s.URN)] != nil: // its entry has read it
			return
		case !s.Custom || snapshot.IsProvider(s.Type): // there is nothing to read
			r.countRefresh(StepSame, s.URN)
			return
		}
		op := r.refreshOf(s)
		r.Ops[op.Op] = op
		r.Queue = append(r.Queue, op.Op)
	})
}

// refreshOf returns the operation that reads a stored resource.
func (r *Run) refreshOf(s *State) *operation {
	op := &operation{Op: r.newOp(), URN: s.URN, For: forRefresh, Key: s.Key}
	op.Step = &Step{
		Op: op.Op, Kind: StepRefresh, URN: s.URN, Type: s.Type, Old: r.reference(s.Key),
		Provider: r.providerFor(s), Preview: r.goal.DryRun, Views: r.viewStates(s.Key),
	}
	if s.Timeouts != nil {
		op.Step.Timeout = s.Timeouts.Read
	}
	return op
}

// refreshFinished records what was read. The step counts as its result: same, update or delete. A resource that does
// not exist any more leaves the snapshot only with all others, see removeLost.
//
// A read that fails fails the update before anything is decided: to plan over a state that could not be confirmed would
// be to guess. One that a cancel has cut off is no failure.
func (r *Run) refreshFinished(op *operation, ev StepFinished) {
	state := r.snap.Get(op.Key)
	switch {
	case ev.Outcome == OutcomeCancelled || ev.Outcome == OutcomeAbsent:
		r.emitCancelled(op, "cut off by the cancel before the resource was read")
		return
	// An unknown outcome does not come here: it is settled first.
	case ev.Outcome != OutcomeDone && ev.Outcome != OutcomePartial:
		r.emitFailed(op, ev.Error)
		r.diagnose("error", op.URN, "%s", ev.Error)
		r.fail(ev.Error)
		return
	case state == nil:
		return
	// Its state stays until all reads have ended, because other states refer to it.
	case ev.ID == "":
		r.recordViews(op, op.Key, ev.Views)
		r.Lost = append(append(r.Lost, op.Key), r.viewsOf(op.Key)...)
		// No phase will do it any more.
		if r.Stopped {
			r.removeLost()
		}
		r.countRefresh(StepDelete, op.URN)
		r.emitRefresh(op, nil, ev.Diff)
		return
	}
	next := *state
	next.ID, next.Outputs, next.InitErrors, next.RefreshBeforeUpdate = ev.ID, ev.Outputs, ev.InitErrors,
		ev.RefreshBeforeUpdate
	// They are stored, so the next up repairs the resource by an update.
	for _, reason := range ev.InitErrors {
		r.diagnose("warning", op.URN, "%s is not healthy: %s", op.URN, reason)
	}
	if ev.Inputs != nil {
		next.Inputs = *ev.Inputs
	}
	if !snapshot.Equal(*state, next) {
		// Modified is the time of a change to the resource; that its health was learnt is none.
		if ev.At != "" && !(state.Inputs.Same(next.Inputs) && state.Outputs.Same(next.Outputs)) {
			next.Modified = ev.At
		}
		r.change(Delta{Kind: DeltaSet, State: &next})
	}
	// What is read is stored, and its provider decides whether it is drift: the order of keys in a JSON document, or what
	// the provider records for itself, is none.
	if ev.Diff == nil || ev.Diff.Change == ChangeNone {
		r.countRefresh(StepSame, op.URN)
	} else {
		r.countRefresh(StepUpdate, op.URN)
	}
	r.emitRefresh(op, &next, ev.Diff)
	r.recordViews(op, op.Key, ev.Views)
}

// countRefresh counts the result of a refresh. Where it only opens another update, that one's steps are counted: a
// resource would otherwise count twice.
func (r *Run) countRefresh(kind StepKind, u urn.URN) {
	if r.goal.Kind == KindRefresh {
		r.count(kind, u)
	}
}

// emitRefresh shows the end of a read. New is nil for a resource that was not found, which the display shows as a
// delete.
func (r *Run) emitRefresh(op *operation, next *State, diff *Diff) {
	r.emit(Emit{
		Kind: EmitOutputs, Op: op.Op, Step: StepRefresh, URN: op.URN, Type: op.Step.Type, Old: op.Step.Old, New: next,
		Diff: diff,
	})
}

// removeLost removes the resources that refreshes did not find, all at once and with the references to them, as
// Pulumi's refresh does; a child of a lost resource becomes a child of that one's parent. It does nothing if nothing
// was lost, so it may be called more than once.
func (r *Run) removeLost() {
	if len(r.Lost) == 0 {
		return
	}
	above := map[urn.URN]urn.URN{}
	for _, k := range r.Lost {
		if s := r.snap.Get(k); s != nil {
			above[r.current(s.URN)] = r.current(s.Parent)
		}
	}
	r.change(Delta{Kind: DeltaRemove, Removes: r.Lost})
	r.Lost = nil
	r.dropReferences(above)
}

// dropReferences removes from all states the references to what has left the snapshot. A reference stays while a copy
// of what it names precedes it. A parent that has left is replaced by the one above it, if above says which that is.
func (r *Run) dropReferences(above map[urn.URN]urn.URN) {
	earlier := map[urn.URN]bool{"": true}
	gone := func(u urn.URN) bool { return !earlier[u] && !earlier[r.snap.Current(u)] }
	var repaired []State
	r.snap.All(func(s *State) {
		// Collected first: a visitor must not change the snapshot.
		if slices.ContainsFunc(s.References(), gone) {
			next := *s
			for next.Parent != "" && gone(next.Parent) {
				next.Parent = above[r.current(next.Parent)]
			}
			repaired = append(repaired, next.Without(gone))
		}
		earlier[s.URN] = true
	})
	for i := range repaired {
		s := &repaired[i]
		if done := r.marked(s.URN).Done; done != nil && done.Key == s.Key {
			r.mark(s.URN).Done = nil // another start of the program records it again
		}
		r.change(Delta{Kind: DeltaSet, State: s})
	}
}
