package engine

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// A restricted update, see selection.go, does as Pulumi's --target and --exclude do:
//
//  - Providers, reads and the stack's own resource always take part, because other resources need them.
//  - A stored resource that is left alone stays as it is stored, with its old references, whatever its goal is now.
//  - A resource that is left alone and is not stored is left out, and nothing that takes part may refer to it.
//  - With targets, only they are deleted. What still refers to a target stops its deletion unless dependents go along.
//  - With excludes, everything else is deleted as ever, but for what an excluded resource needs.
//
// A resource that is left alone must still stand behind all that it refers to. Therefore what it refers to is moved
// to the new list before it (keepReferences), even if the program does not register it any more, and is then not
// deleted (mark.Kept).

// markKept records what was moved ahead of a state that refers to it.
func (r *Run) markKept(kept []urn.URN) {
	for _, u := range kept {
		r.mark(u).Kept = true
	}
}

// leaveAlone keeps a resource as it was, whatever the program declares now. One that is not stored is left out: the
// program gets its inputs, and everything else of it is unknown. One that is stored under a former name keeps that
// name, as in Pulumi, and the program gets it: what the program registers next refers to it by that.
func (r *Run) leaveAlone(e *entry, old *State) {
	if old == nil {
		r.leaveOut(e, e.New.Inputs)
		return
	}
	r.keepOld(e, old)
	// An earlier epoch has left it alone under its former name, and has counted it.
	if f := r.marked(e.URN).Done; f != nil && f.Digest == e.Reg.Digest && r.isLive(e.URN, f.Key) {
		r.repeatAnswer(e, f)
		return
	}
	op := r.newOp()
	e.Kind = StepSame
	r.count(StepSame, e.URN)
	r.emitSame(op, e, nil)
	r.done(e, nil)
}

// leaveOut answers an entry that is not carried out: the program gets the object, and everything else is unknown.
func (r *Run) leaveOut(e *entry, object Bag) {
	for _, u := range []urn.URN{e.URN, r.urnOf(e.Reg)} { // two names if it was left alone, see keepName
		r.mark(u).LeftOut = true
	}
	r.finish(e, Reply{Object: object, Result: ResultSkip, Unknown: true})
}

// keepOld moves the old state of an entry to the new list, behind what it refers to, and gives the entry its name.
func (r *Run) keepOld(e *entry, old *State) {
	r.markKept(r.keep(old.Key))
	e.New = *r.snap.Get(old.Key)
	r.keepName(e)
}

// keepName gives an entry that is left alone the name that its state is stored under. The entry is then known by both
// names, so that no other registration can have one of them, and it claims none.
func (r *Run) keepName(e *entry) {
	declared, stored := e.URN, e.New.URN
	if declared == stored {
		return
	}
	r.mark(declared).Claims, r.mark(stored).ClaimedBy = "", ""
	r.mark(stored).Named = r.marked(declared).Named // for what depends on it
	e.URN = stored
	r.byURN[stored] = e
}

// keepReferences moves everything that a state refers to, as it is stored, to the new list, so that it precedes the
// state; that includes a provider that has been replaced since. It returns the URNs of the live states that it found by
// reference and moved, however far. It must be called before the state itself is moved or recorded.
func (r *Run) keepReferences(s State) []urn.URN {
	k := keeping{r: r, seen: map[Key]bool{}}
	k.references(s)
	return k.moved
}

// keep moves a stored resource to the new list as it is, behind what it refers to. It returns what keepReferences does.
func (r *Run) keep(key Key) []urn.URN {
	k := keeping{r: r, seen: map[Key]bool{}}
	k.state(key)
	return k.moved
}

// keeping is keepReferences or keep at work. By their URNs, copies from different times can refer to each other, so
// seen ends what would be an endless recursion.
type keeping struct {
	r     *Run
	seen  map[Key]bool
	moved []urn.URN
}

func (k *keeping) references(s State) {
	snap := k.r.snap
	for _, u := range s.References() {
		key, ok := snap.LiveKey(u)
		moved := func(key Key) bool { _, is := snap.InNew(key); return is || k.seen[key] }
		// It is what took the place of a copy that a state of today means by the former name.
		now, renamed := snap.LiveKey(snap.Current(u))
		switch copies := snap.Copies(u); {
		case ok && moved(key) || renamed && moved(now) && !s.Delete:
			continue
		case ok:
			k.moved = append(k.moved, u)
		case len(copies) > 0 && !slices.ContainsFunc(copies, moved):
			key = copies[0] // only copies that wait for their deletion are left, and all stand in the base
		default:
			continue
		}
		k.state(key)
	}
	if p := snap.Provider(s.Provider); p != nil {
		k.state(p.Key)
	}
}

// state moves a state behind its references and the copies that it may use (see usersOfCopies), unless it stands in the
// new list already.
func (k *keeping) state(key Key) {
	i, stays := k.r.snap.InBase(key)
	if !stays || k.seen[key] {
		return
	}
	k.seen[key] = true
	k.references(*k.r.snap.Get(key))
	for _, used := range k.r.needs(key) {
		if at, inBase := k.r.snap.InBase(used); k.r.snap.Get(used).Delete && inBase && at < i {
			k.state(used)
		}
	}
	k.r.change(Delta{Kind: DeltaKeep, First: i, Count: 1})
}

// oldInProgress reports that something which an entry's old state refers to was registered before it and is not done.
// start has waited only for the references of the goal, and these may differ.
func (r *Run) oldInProgress(e *entry) bool {
	old := r.snap.Get(e.Old)
	return old != nil && slices.ContainsFunc(old.References(), func(u urn.URN) bool {
		other := r.byURN[r.current(u)]
		return other != nil && other.Order < e.Order && other.Stage != stageDone
	})
}

// skippedReference returns a resource that the entry needs and that the update leaves out; "" when there is none.
func (r *Run) skippedReference(e *entry) urn.URN {
	for _, u := range e.Reg.references() {
		if r.marked(u).LeftOut {
			return u
		}
	}
	return ""
}

// circularReference returns a resource that the entry needs and that, left alone, still depends on what the entry is to
// change, however far: no snapshot could put one of them before the other.
func (r *Run) circularReference(e *entry) urn.URN {
	if !r.restricted() || e.Old == "" {
		return ""
	}
	seen := map[urn.URN]bool{}
	var leads func(u urn.URN) bool
	leads = func(u urn.URN) bool {
		state := r.snap.Live(u)
		if state == nil || seen[u] {
			return false
		}
		seen[u] = true
		now := r.snap.Renamed(*state)
		return state.Key == e.Old || slices.ContainsFunc(now.References(), leads)
	}
	for _, u := range e.Reg.references() {
		if leads(u) {
			return u
		}
	}
	return ""
}

// withoutManagers takes replaced providers out of a group that still manage resources outside the targets: those
// resources keep the provider that they have.
// Those providers stay as copies, and a later update without targets deletes them.
func (r *Run) withoutManagers(group []*deletion) []*deletion {
	dying := map[Key]bool{}
	for _, d := range group {
		dying[d.Key] = true
	}
	manages := map[Key]bool{}
	r.snap.All(func(s *State) {
		if p := r.snap.Provider(s.Provider); p != nil && p.Delete && !dying[s.Key] {
			manages[p.Key] = true
		}
	})
	return slices.DeleteFunc(group, func(d *deletion) bool { return manages[d.Key] })
}

// withoutNeededByExcluded takes out of a group what excluded resources referred to when the update began, however far.
// It goes by URN, as Pulumi does: an excluded resource was made with the copy that waits for its deletion, not with the
// one that replaced it. Whoever depends on a component depends on what stands below it, too, if that was made before.
func (r *Run) withoutNeededByExcluded(group []*deletion) []*deletion {
	parents, components := map[urn.URN]urn.URN{}, map[urn.URN]bool{}
	for i := range r.snap.BaseLen() {
		s := r.snap.BaseAt(i)
		parents[s.URN], components[s.URN] = s.Parent, !s.Custom
	}
	stays, whole := map[urn.URN]bool{}, map[urn.URN]bool{}
	isBelowWhole := func(u urn.URN) bool {
		for ; u != ""; u = parents[u] {
			if whole[u] {
				return true
			}
		}
		return false
	}
	for i := r.snap.BaseLen() - 1; i >= 0; i-- {
		s := r.snap.BaseAt(i)
		if isBelowWhole(s.Parent) {
			stays[s.URN], stays[r.current(s.URN)] = true, true
		}
		if lost := len(r.snap.Copies(r.current(s.URN))) == 0; lost || r.mayChange(s) && !stays[s.URN] {
			continue
		}
		for _, u := range s.References() {
			stays[u], stays[r.current(u)] = true, true
		}
		orphan := *s
		orphan.Parent = "" // a child needs no other children of its parent
		for _, u := range orphan.References() {
			whole[u] = whole[u] || components[u]
		}
	}
	return slices.DeleteFunc(group, func(d *deletion) bool { return stays[d.URN] })
}

// refuseUndeclaredDependents fails an up whose program does not declare any more what depends on a target, however far:
// as in Pulumi, that has to be a target as well. It reports whether there is any. The references are those of the base,
// and a copy that waits for its deletion counts.
func (r *Run) refuseUndeclaredDependents() bool {
	if r.goal.Kind != KindUp || r.goal.TargetDependents {
		return false
	}
	refused := false
	depends := map[urn.URN]bool{}
	for i := range r.snap.BaseLen() {
		s := r.snap.BaseAt(i)
		if s.IsView() {
			continue
		}
		named := r.names(s.URN) || r.names(r.current(s.URN))
		if !named && !slices.ContainsFunc(s.References(), func(u urn.URN) bool { return depends[u] }) {
			continue
		}
		depends[s.URN] = true
		if named || r.ofSnippet(s.URN) || r.snap.Get(s.Key) == nil || !s.Delete && (r.registered(s.URN) || r.wants(s.URN)) {
			continue
		}
		refused = true
		r.diagnose("error", s.URN, "%s would be deleted, because it depends on a target; target it as well, or use "+
			"--target-dependents", s.URN)
		r.noteError("a resource outside the targets would be deleted")
	}
	return refused
}

// refuseReferenced returns the group of deletions or, if resources outside the targets still depend on one of them,
// none: then the update fails with an error for each.
//
// Nothing of the group is deleted then, not even what nobody refers to, so that the user can decide about all of it.
//
// With excludes nothing is refused: what an excluded resource needs stays, as in Pulumi.
func (r *Run) refuseReferenced(group []*deletion) []*deletion {
	switch {
	case r.excludes():
		return r.withoutNeededByExcluded(group)
	case !r.restricted():
		return group
	}
	group = r.withoutManagers(group)
	if r.refuseUndeclaredDependents() {
		return nil
	}
	root := map[urn.URN]urn.URN{} // of what would be deleted, and of what depends on that
	byKey := map[Key]bool{}
	for _, d := range group {
		byKey[d.Key] = true
		if d.Kind != StepDeleteReplaced && d.Kind != StepDiscardReplaced { // what took the place of a copy stays
			root[d.URN] = d.URN
		}
	}
	needed := false
	r.snap.All(func(s *State) {
		if byKey[s.Key] || s.IsView() {
			return
		}
		for _, u := range s.References() {
			if from, goes := root[r.current(u)]; goes {
				needed, root[r.current(s.URN)] = true, from
				r.diagnose("error", from, "%s would be deleted, but %s depends on it and is not a target; target it "+
					"too, or use --target-dependents", from, s.URN)
				return
			}
		}
	})
	if !needed {
		return group
	}
	r.noteError("a resource outside the targets depends on one that would be deleted")
	return nil
}
