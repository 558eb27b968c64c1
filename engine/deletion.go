package engine

import (
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// A deletion goes through these places; in Deletions and deletionOf it stands from the first to the last:
//
//  markForDeletion  it counts its blockers; without any it is put into free
//  startDeletion    its step is queued; if it calls no provider, it ends at once
//  deleted          the effect is recorded, and unblock frees those that waited for it
//  failDeletion     or it failed, and with it all that waited for it
//  dropDeletions    or it was not issued when the update stopped or a new epoch began

// deletion is a state that is marked for deletion. It starts when every marked state that depends on it is deleted.
//
// Invariant: Blockers is the number of unfinished deletions whose Frees contain Key, and 0 once it has started.
// Invariant: a deletion that has not started has Blockers, or is in Run.free.
type deletion struct {
	Key  Key
	URN  urn.URN
	Kind StepKind
	// For is the URN whose replacement waits for it; "" in the delete phase.
	For urn.URN `json:",omitempty"`
	// Blockers counts the deletions that must end first; Frees are the deletions for which this one counts.
	Blockers int
	Frees    []Key `json:",omitempty"`
	Started  bool
}

// newDeletion returns the deletion of a member of a cascade: its state stays, pending its replacement. A copy that
// waits for its deletion anyway leaves the snapshot. The entry of root waits for the deletion, and fails with it.
func (r *Run) newDeletion(s *State, root urn.URN) *deletion {
	return &deletion{Key: s.Key, URN: s.URN, Kind: StepDeleteReplaced, For: root}
}

// markForDeletion adds a group of deletions, given in any order, and finds which blocks which: a state is deleted after
// the states of the group that refer to its URN. In a cascade only those count that stand after it in the snapshot, for
// only they can use it; so no two of them block each other. In the delete phase every reference counts; breakCycle
// resolves what then waits in a circle. A deletion that has started is not blocked any more, whatever becomes of the
// group.
func (r *Run) markForDeletion(group []*deletion) {
	position := r.snap.Position
	slices.SortFunc(group, func(a, b *deletion) int { return position(b.Key) - position(a.Key) })
	for _, d := range group {
		r.Deletions = append(r.Deletions, d)
		r.deletionOf[d.Key] = d
	}
	for _, d := range group {
		for _, k := range r.needs(d.Key) {
			other := r.deletionOf[k]
			if other == nil || other.Started {
				continue
			}
			if d.For == "" || position(k) < position(d.Key) {
				other.Blockers++
				d.Frees = append(d.Frees, k)
			}
		}
	}
	for _, d := range group {
		if d.Blockers == 0 {
			r.free = append(r.free, d.Key)
		}
	}
}

// needs returns every copy of what a state refers to, each once. A reference may name a copy by the name that it had
// when it was stored, by the name of now, or by a former name of what is live, which a copy that waits for its deletion
// keeps.
func (r *Run) needs(k Key) []Key {
	var out []Key
	seen := map[urn.URN]bool{}
	for _, u := range r.snap.Get(k).References() {
		names := []urn.URN{u, r.current(u)} // the second has no state if its registration failed
		for _, name := range names {
			if live := r.snap.Live(name); live != nil {
				names = append(names, live.Aliases...)
			}
		}
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				out = append(out, r.snap.Copies(name)...)
			}
		}
	}
	return out
}

// advanceDeletions starts every deletion that nothing blocks; it reports whether one started. Those that call no
// provider end at once and may free others.
func (r *Run) advanceDeletions() bool {
	moved := false
	for len(r.free) > 0 {
		k := r.free[0]
		r.free = r.free[1:]
		if d := r.deletionOf[k]; d != nil && !d.Started && d.Blockers == 0 { // a later group may block it again
			d.Started, moved = true, true
			r.startDeletion(d)
		}
	}
	return moved
}

// breakCycle frees the deletion that stands last, when all that are left block each other: copies from different times
// can refer to each other's URNs. It reports whether there was one.
func (r *Run) breakCycle() bool {
	open := r.openDeletions() // from the last to the first
	i := slices.IndexFunc(open, func(d *deletion) bool { return !d.Started })
	if i < 0 {
		return false
	}
	last := open[i]
	for _, d := range open {
		d.Frees = slices.DeleteFunc(d.Frees, func(k Key) bool { return k == last.Key })
	}
	last.Blockers, r.free = 0, append(r.free, last.Key)
	return true
}

// startDeletion queues the step of a deletion, or ends it at once if it calls no provider.
func (r *Run) startDeletion(d *deletion) {
	state := r.snap.Get(d.Key)
	if state == nil {
		r.unblock(d)
		return
	}
	op := &operation{Op: r.newOp(), URN: d.URN, For: forDeletion, Key: d.Key}
	op.Step = &Step{
		Op: op.Op, Kind: d.Kind, URN: d.URN, Type: state.Type, Old: r.reference(d.Key),
		Provider: r.providerFor(state), Preview: r.goal.DryRun, Views: r.viewStates(d.Key),
	}
	if state.Timeouts != nil {
		op.Step.Timeout = state.Timeouts.Delete
	}
	// Members of a cascade were checked by refuseProtectedMember, before anything was deleted.
	if state.Protect && d.Kind == StepDelete && !r.goal.IgnoreProtect {
		r.protectedDeletion(d, op)
		if !r.goal.DryRun {
			return
		}
	}
	op.Silent = r.deletesNothing(d, state)
	if !r.goal.DryRun && state.Custom && r.sharesID(state) {
		r.diagnose("warning", d.URN, "%s was not replaced by another one: its provider has found what was there, %s, and "+
			"that stays; to have it deleted before it is made again, give it the option deleteBeforeReplace", d.URN, state.ID)
	}
	if op.Silent && !op.Step.hooked() {
		r.emit(Emit{Kind: EmitPre, Op: op.Op, Step: d.Kind, URN: d.URN, Type: state.Type, Old: op.Step.Old})
		r.deleted(d, op)
		return
	}
	r.Ops[op.Op] = op
	r.Queue = append(r.Queue, op.Op)
}

// protectedDeletion fails the deletion of a protected resource. What it depends on stays, too; the update goes on with
// the rest. A preview reports it and goes on as if it were deleted, to show everything that would happen.
func (r *Run) protectedDeletion(d *deletion, op *operation) {
	message := fmt.Sprintf("%s is protected and cannot be deleted; run `deployctl state unprotect '%s'`, or pass "+
		"--ignore-protect; one that the program declares needs its option protect removed, and one that was just "+
		"imported its declaration in the program", d.URN, d.URN)
	r.diagnose("error", d.URN, "%s", message)
	if !r.goal.DryRun {
		r.emit(Emit{Kind: EmitPre, Op: op.Op, Step: d.Kind, URN: d.URN, Type: op.Step.Type, Old: op.Step.Old})
		r.emitFailed(op, message)
		r.failDeletion(d)
	}
	r.noteError(message)
}

// deletesNothing reports that a deletion changes the state only, and calls no provider.
//
// retainOnDelete keeps the real resource. deletedWith says that it disappears together with another one.
func (r *Run) deletesNothing(d *deletion, s *State) bool {
	logical := d.Kind == StepReadDiscard || d.Kind == StepDiscardReplaced || d.Kind == StepRemovePendingReplace
	return r.goal.DryRun || logical || !s.Custom || s.External || s.RetainOnDelete || s.PendingReplacement ||
		snapshot.IsProvider(s.Type) || r.sharesID(s) || r.goesAlong(s)
}

// sharesID reports that the live replacement has the same provider, type and id: its create found what was there.
// Deleting the old state would delete the new resource.
func (r *Run) sharesID(s *State) bool {
	live := r.snap.Live(r.current(s.URN))
	return s.Delete && s.ID != "" && live != nil && live.Key != s.Key && !live.Delete && live.Type == s.Type &&
		live.ID == s.ID &&
		live.Provider == s.Provider
}

// goesAlong reports that the resource which a state is deletedWith was deleted in this update or is marked for it. Of
// its copies only one that stands before the state counts: a later one was created without this resource.
func (r *Run) goesAlong(s *State) bool {
	if s.DeletedWith == "" {
		return false
	}
	goes := func(k Key) bool { return r.deletionOf[k] != nil && r.snap.Position(k) < r.snap.Position(s.Key) }
	return slices.ContainsFunc([]urn.URN{s.DeletedWith, r.current(s.DeletedWith)}, func(u urn.URN) bool {
		return r.marked(u).Deleted || slices.ContainsFunc(r.snap.Copies(u), goes)
	})
}

// deletionFinished ends a delete step. If it failed, what the resource depends on stays, too. A step of an epoch that
// is over has no deletion any more, but its effect is recorded as that of a replacement: the next registration creates
// it again.
func (r *Run) deletionFinished(op *operation, ev StepFinished) {
	d := r.deletionOf[op.Key]
	r.recordViews(op, op.Key, ev.Views)
	if ev.Outcome != OutcomeDone && ev.Outcome != OutcomePartial {
		message := ev.Error
		if ev.Outcome == OutcomeCancelled || ev.Outcome == OutcomeAbsent {
			why := "cut off by the cancel"
			if !r.Cancelled { // its before hooks ran while the update failed
				why = "the update failed"
			}
			r.emitCancelled(op, why+" before the resource was deleted")
		} else {
			r.emitFailed(op, message)
		}
		// An unknown outcome has been reported by leavePending and does not come here.
		if ev.Outcome == OutcomeFailed {
			r.diagnose("error", op.URN, "%s", ev.told(op.Step))
			r.fail(message)
		}
		if d != nil {
			r.failDeletion(d)
		}
		return
	}
	// For is set, so the state is kept pending its replacement: a program that runs again may still want it.
	if d == nil { // its epoch is over, its effect is not
		d = &deletion{Key: op.Key, URN: op.URN, Kind: op.Step.Kind, For: op.URN}
	}
	r.deleted(d, op)
}

// deleted records that a state's resource does not exist any more. A member of a cascade stays in the snapshot, pending
// its replacement, so that an update that ends here still knows what to create again. A copy that is deleted with the
// cascade does not stay, so members lose their references to it.
func (r *Run) deleted(d *deletion, op *operation) {
	r.removeViews(d.Key, d.Kind)
	state := r.snap.Get(d.Key)
	switch {
	case state == nil:
	case d.For != "" && !state.Delete:
		next := *state
		next.PendingReplacement = true
		r.change(Delta{Kind: DeltaSet, State: &next})
	default:
		r.change(Delta{Kind: DeltaRemove, Removes: []Key{d.Key}})
		r.moveStranded(d.Key)
		if d.For != "" {
			r.dropReferences(nil) // of members, which stay
		}
	}
	if d.Kind == StepDelete {
		r.mark(d.URN).Deleted = true
		kind := StepDelete
		if state != nil && state.RetainOnDelete {
			kind = CountRetained
		}
		r.count(kind, d.URN)
	}
	if !r.runAfterHooks(op) {
		r.deletionEnded(d, op)
	}
}

// unblock ends a deletion that was done: those for which it counted may start.
func (r *Run) unblock(d *deletion) {
	r.unmarkDeletion(d)
	for _, k := range d.Frees {
		if other := r.deletionOf[k]; other != nil {
			r.unblocked(other)
		}
	}
}

// unblocked counts that one of the deletions for which this one waits has ended.
func (r *Run) unblocked(d *deletion) {
	if d.Blockers--; d.Blockers == 0 {
		r.free = append(r.free, d.Key)
	}
}

// unmarkDeletion removes a deletion. The list is compacted once more than half of it is dead.
func (r *Run) unmarkDeletion(d *deletion) {
	delete(r.deletionOf, d.Key)
	if len(r.Deletions) > 2*len(r.deletionOf) {
		r.Deletions = r.openDeletions()
	}
}

// openDeletions returns the deletions that have not ended, in order: from the last state to the first within a group.
func (r *Run) openDeletions() []*deletion {
	var out []*deletion
	for _, d := range r.Deletions {
		if r.deletionOf[d.Key] == d {
			out = append(out, d)
		}
	}
	return out
}

// failDeletion drops a failed deletion and, transitively, the deletions of what still exists may use: of what stands
// before it. What it was blocking beyond that goes on. A replacement that waits for one of them fails.
//
// It ends what unblock would otherwise end, so each deletion ends by exactly one of the two, or by dropDeletions.
func (r *Run) failDeletion(d *deletion) {
	r.unmarkDeletion(d)
	for _, k := range d.Frees {
		switch other := r.deletionOf[k]; {
		case other == nil:
		case r.snap.Position(k) < r.snap.Position(d.Key):
			r.failDeletion(other)
		default:
			r.unblocked(other)
		}
	}
	if e := r.byURN[d.For]; e != nil && (e.Stage == stageClearing || e.Stage == stageSweeping) {
		r.failEntry(e, fmt.Sprintf("%s could not be deleted before it is replaced", d.URN))
	}
}

// dropDeletions forgets the deletions whose steps were not issued: the update stops, or another epoch decides about
// them. Those whose steps run no longer block or free any other: their Frees name deletions that are forgotten.
func (r *Run) dropDeletions() {
	r.free = nil
	keep := r.Deletions[:0]
	for _, d := range r.Deletions {
		if r.deletingNow(d.Key) {
			d.Frees = nil
			keep = append(keep, d)
			continue
		}
		delete(r.deletionOf, d.Key)
	}
	r.Deletions = keep
}

// deletingNow reports that the delete step of a state was issued.
func (r *Run) deletingNow(k Key) bool {
	return slices.ContainsFunc(r.Slots, func(op int) bool { o := r.Ops[op]; return o.For == forDeletion && o.Key == k })
}
