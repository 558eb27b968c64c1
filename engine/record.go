package engine

import (
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// applyResult puts into the entry's new state what its step found, and when. An update that did not succeed keeps the
// old inputs, as in Pulumi: the resource does not have the new ones, so the next update must find a difference. What
// the resource referred to until now stays in this update, too, also if the program does not register it any more.
func (r *Run) applyResult(e *entry, ev StepFinished) {
	learn(&e.New, ev)
	if old := r.snap.Get(e.Old); ev.Outcome == OutcomePartial && old != nil {
		r.markKept(old.References())
		if e.Kind == StepUpdate {
			e.New.Inputs = old.Inputs
		}
	}
	e.stamp(ev.At)
	if r.adopts() && e.New.ImportID == e.New.ID {
		e.New.ImportID = "" // as in Pulumi's states, where only the option import leaves it
	}
}

// stamp puts the time of the entry's step into its new state. The time of a create is also that of its first
// modification. An update keeps Created, which prepare took from the old state. A step without a time leaves both.
func (e *entry) stamp(at string) {
	switch {
	case at == "":
	case e.Kind == StepUpdate:
		e.New.Modified = at
	default:
		e.New.Created, e.New.Modified = at, at
	}
}

// learn puts what a step found into a state. An id and inputs that the step did not report stay as they were; outputs,
// initialisation errors and RefreshBeforeUpdate are always those of the last step, so that a step which succeeds clears
// the errors of the one before.
func learn(s *State, ev StepFinished) {
	if ev.ID != "" {
		s.ID = ev.ID
	}
	if ev.Inputs != nil {
		s.Inputs = *ev.Inputs
	}
	s.Outputs, s.InitErrors, s.RefreshBeforeUpdate = ev.Outputs, ev.InitErrors, ev.RefreshBeforeUpdate
}

// record stores the entry's new state under the operation that made it. The old state is removed or, if another
// resource takes its place, kept as a copy that waits for its deletion.
//
// The new state goes to the end of the new list: everything that it refers to was recorded before. A copy stays where
// it is, so a state that depended on the old one may now stand before the new one: moveDependents mends that.
func (r *Run) record(e *entry, op int) {
	e.New.Key = snapshot.OpKey(op)
	next := e.New
	if e.Kind == StepCreate || e.Kind == StepCreateReplacement {
		// The next create of the URN makes another resource, so it must get another seed, and with it another name.
		m := r.mark(e.URN)
		m.Creates, m.Seed, m.Since = m.Creates+1, nil, 0
	}
	put := Delta{Kind: DeltaPut, Op: op, State: &next}
	if r.goal.Identity != nil && (r.marked(e.URN).Creates > 0 || e.Found != nil) {
		put.Next = r.generation(e.URN)
	}
	for _, from := range e.New.Aliases {
		if r.snap.Current(from) != e.URN {
			r.change(Delta{Kind: DeltaAlias, From: from, To: e.URN})
		}
	}
	old := r.snap.Get(e.Old)
	from := r.snap.NewLen()
	if old != nil {
		if i, moved := r.snap.InNew(old.Key); moved {
			from = i
		}
		if e.replaces() {
			r.mark(e.URN).Replaced = true
		}
		// The old resource still exists. Its state becomes a copy where it stands, and the delete phase deletes it.
		if e.replaces() && !old.PendingReplacement {
			r.deleteViewsLater(old.Key)
			waits := *old
			waits.Delete = true
			r.change(Delta{Kind: DeltaSet, State: &waits})
		} else {
			// In one delta with the new state, so that the resource is never missing from the snapshot.
			put.Removes = []Key{old.Key}
		}
	}
	end := r.snap.NewLen()
	r.change(put)
	r.moveDependents(e.URN, from, end)
}

// moveDependents moves the states of a stretch of the new list that depend on a URN, however far, behind what now
// stands for it: an earlier start of the program, or targets, had put them there. A copy that waits for its deletion
// moves only when nothing that it refers to stands before it any more. It takes along what is left alone and has no
// other copy to refer to, and what may use it (see usersOfCopies).
//
// What the new state or such a copy refers to stays before it. By what it referred to before this update, targets may
// have left it alone in a circle: it loses that reference until a registration gives it its own.
//
// The stretch begins where the old state stood, or at the end of the list if that was in the base, and ends before the
// new state. Moved states go to the end in the order in which they stood, so they keep their order among each other.
// Without a URN only those move to whose references nothing stands before them.
func (r *Run) moveDependents(u urn.URN, from, end int) {
	moved, copies := map[urn.URN]bool{u: u != ""}, map[Key]bool{}
	depends := func(ref urn.URN) bool { return moved[r.current(ref)] }
	uses := func(s *State) bool {
		return len(copies) > 0 && slices.ContainsFunc(r.needs(s.Key), func(k Key) bool { return copies[k] })
	}
	var needed map[Key]bool // to stay where it is; known when the first state moves
	circle := false
	for i := from; i < end; i++ {
		state, there := r.snap.NewAt(i)
		if !there {
			continue
		}
		must := r.snap.Stranded(state) || !state.Delete && slices.ContainsFunc(state.References(), depends)
		if !must && (r.recorded(&state) || !uses(&state)) {
			continue
		}
		if needed == nil {
			needed = r.leftBefore(end)
		}
		if needed[state.Key] {
			circle = circle || must
			continue
		}
		if state.Delete {
			copies[state.Key] = true
			r.snap.Ancestors(state, needed)
		} else {
			moved[r.current(state.URN)] = true
		}
		r.change(Delta{Kind: DeltaPut, State: &state, Removes: []Key{state.Key}})
	}
	if circle {
		r.dropReferences(nil)
	}
}

// leftBefore returns what a new state refers to, however far, if targets may have left that alone: without them, all of
// it was recorded before. At the end of the list there is no state.
func (r *Run) leftBefore(place int) map[Key]bool {
	left := map[Key]bool{}
	if r.restricted() && place < r.snap.NewLen() {
		state, _ := r.snap.NewAt(place)
		r.snap.Ancestors(state, left)
	}
	return left
}

// moveStranded moves the states that referred to a removed copy, and to nothing else before them, behind what took its
// place. Only a restricted update leaves such states: copies that wait for their deletion and are no targets.
func (r *Run) moveStranded(removed Key) {
	i, moved := r.snap.InNew(removed)
	if !r.restricted() || !moved { // what took the place of a base state precedes the base
		return
	}
	r.moveDependents("", i+1, r.snap.NewLen())
}

// replaces reports that the entry's step puts something else in the place of the old resource, which stays until the
// delete phase if it was not deleted before.
// The same kinds are used when the old resource has been deleted first; record tells the two cases apart by
// PendingReplacement.
func (e *entry) replaces() bool {
	return e.Kind == StepCreateReplacement || e.Kind == StepReadReplacement || e.Kind == StepImportReplacement
}

// same keeps a resource without a step: its new checked inputs are stored with its old outputs.
func (r *Run) same(e *entry, old *State, stables []string) {
	e.Kind = StepSame
	e.New.ID, e.New.Outputs, e.New.InitErrors = old.ID, old.Outputs, old.InitErrors
	if e.Plan != nil && e.Plan.Outputs != nil {
		e.New.Outputs = *e.Plan.Outputs
	}
	if e.Imported {
		// The import was the step; what it stored takes the goal's header.
		e.New.Key = old.Key
		next := e.New
		r.change(Delta{Kind: DeltaSet, State: &next})
		r.done(e, stables)
		return
	}
	op, was := r.newOp(), header(old)
	r.keepValues(e, old, op)
	if e.Again != nil { // it is shown and counted already
		r.keepViews(e.New.Key)
		r.done(e, stables)
		return
	}
	r.count(StepSame, e.URN)
	if was.URN == e.URN && (!was.Protect || e.New.Protect) {
		r.emitSame(op, e, nil)
	} else { // people care for another name, and for a protection that is lost
		r.emitSame(op, e, &was)
	}
	r.keepViews(e.New.Key)
	r.done(e, stables)
}

// keepValues records the entry's new state, which has the values of the old one. A state of the base that would be
// stored exactly as it is only moves to the new list, which costs no write of its own. One that an earlier epoch put
// into the new list is recorded again, at the end of it.
func (r *Run) keepValues(e *entry, old *State, op int) {
	if i, ok := r.snap.InBase(old.Key); ok && unchanged(*old, e.New) {
		e.New = *old
		r.change(Delta{Kind: DeltaKeep, First: i, Count: 1})
	} else {
		e.New.Rest = old.Rest
		r.record(e, op)
	}
}

// header returns what is shown of an unchanged state: not what it holds, because there may be very many.
func header(s *State) State {
	return State{
		Key: s.Key, URN: s.URN, Type: s.Type, Custom: s.Custom, ID: s.ID, Parent: s.Parent, Provider: s.Provider,
		Protect: s.Protect,
	}
}

// emitSame shows an unchanged resource, and the header that it had before, if that is to be shown. The summary still
// counts it, and the header is enough to name it in the display.
func (r *Run) emitSame(op int, e *entry, old *State) {
	shown := header(&e.New)
	for _, kind := range []EmitKind{EmitPre, EmitOutputs} {
		r.emit(Emit{Kind: kind, Op: op, Step: StepSame, URN: e.URN, Type: shown.Type, Old: old, New: &shown})
	}
}

// unchanged reports that nothing about a stored state would be written differently. A line of the program that only
// moved is not worth a write.
func unchanged(old, now State) bool {
	now.Key, now.Rest, now.SourcePosition = old.Key, old.Rest, old.SourcePosition
	return snapshot.Equal(old, now)
}
