package engine

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// A resource that is deleted before it is replaced takes along the dependents that its absence would replace. In order:
//
//  1. candidates waits until the fate of every dependent is known, and lists those that are not decided yet.
//  2. The Cascade command finds, by Diffs of their providers, which of them must be replaced.
//  3. deleteFirst refuses the replacement, or marks the members and the old resource for deletion, dependents first.
//  4. A deleted member stays in the snapshot, pending its replacement; so does the old resource.
//  5. deletedFirst queues the create of the entry. Members are created when their own registrations are decided.
//
// If the update ends between 3 and 5, the next one finds the states pending replacement and creates them.

// candidates returns the dependents that may have to be deleted before the old resource is. The entry waits while
// another cascade is being found or swept for, while a dependent that was registered earlier is not done, and while a
// step or a deletion of a dependent is in progress: a state must have one fate.
//
// Invariant: at most one entry is cascading or sweeping.
func (r *Run) candidates(e *entry) (candidates []State, wait bool) {
	if r.cascading != 0 || r.sweeper != nil && r.sweeper.Stage == stageSweeping {
		return nil, true
	}
	for _, k := range r.dependents(e.Old) {
		state := r.snap.Renamed(*r.snap.Get(k))
		other := r.byURN[r.current(state.URN)]
		switch {
		case state.IsView(): // it goes with its owner
			continue
		// A decision that was registered earlier, or a step or a deletion in progress, could change the state while the
		// cascade is computed.
		case other != nil && other.Order < e.Order && other.Stage != stageDone,
			r.stepOf(state.URN) != nil, r.deletionOf[k] != nil:
			return nil, true
		// Its decision is final; or it is a copy, which copiesInTheWay looks for.
		case other != nil && other.committed(), state.Delete:
			continue
		}
		candidates = append(candidates, state)
	}
	return candidates, false
}

// startCascade asks which of the candidates must be deleted first: those that a change of the old resource would
// replace. The states of the command have renamed references, so that the host finds what depends on what by URN alone.
// Without candidates there is nothing to ask, and the deletion begins at once.
func (r *Run) startCascade(e *entry, old *State, candidates []State) {
	if len(candidates) == 0 {
		r.deleteFirst(e, nil)
		return
	}
	providers := map[string]Provider{}
	for _, c := range candidates {
		if p := r.providerOf(c.Provider); p != nil {
			providers[c.Provider] = *p
		}
	}
	r.cascading = r.newQuery(&operation{URN: e.URN, Entry: e, For: forCascade})
	r.become(e, stageCascading, r.cascading)
	r.ready.Start = append(r.ready.Start, Cascade{
		Op: e.Op, Root: r.snap.Renamed(*old), Candidates: candidates, Providers: providers,
	})
}

// dependents returns every state that depends on one, however far, in snapshot order. One pass is enough, because
// everything in the snapshot stands behind what it refers to: before the root there is no dependent, and a dependent of
// a dependent comes after it.
func (r *Run) dependents(root Key) []Key {
	reached := map[urn.URN]bool{r.snap.Get(root).URN: true}
	var out []Key
	past := false
	r.snap.All(func(s *State) {
		if s.Key == root {
			past = true
			return
		}
		if !past {
			return
		}
		for _, u := range s.References() {
			if reached[u] || reached[r.current(u)] {
				reached[s.URN] = true
				out = append(out, s.Key)
				return
			}
		}
	})
	return out
}

// cascadePlanned goes on with the replacement for which a cascade was computed. The result of a cascade that belongs to
// an earlier epoch leaves cascading alone: this epoch may be finding another one.
func (r *Run) cascadePlanned(ev CascadePlanned) {
	if r.cascading == ev.Op {
		r.cascading = 0
	}
	op := r.takeQuery(ev.Op)
	if op == nil {
		return
	}
	e := op.Entry
	if ev.Error != "" {
		r.reject(e, "what depends on %s could not be found: %s", e.URN, ev.Error)
		return
	}
	r.deleteFirst(e, ev.Members)
}

// refuseProtectedMember fails an entry whose replacement would first delete a protected resource. A preview reports it
// and goes on. It reports whether the entry failed.
//
// This and the other refusals are called before anything of the group is marked, so a refused replacement has deleted
// nothing live. A copy is exempt: its replacement exists, so the protection has been lifted already.
func (r *Run) refuseProtectedMember(e *entry, group []*deletion) bool {
	const message = "a protected resource would be replaced"
	for _, d := range group {
		if state := r.snap.Get(d.Key); !state.Protect || state.Delete || r.goal.IgnoreProtect {
			continue
		}
		r.diagnose("error", e.URN, "%s cannot be replaced: %s would have to be replaced with it, and is protected; "+
			"remove its protect option and update first", e.URN, d.URN)
		if !r.goal.DryRun {
			r.bail(e, message)
			return true
		}
		r.noteError(message)
	}
	return false
}

// refuseUnselectedMember fails an entry whose replacement would first delete a resource that the update leaves alone:
// nothing would create it again. It reports whether the entry failed. It goes through the group in snapshot order, as
// mayChange requires.
func (r *Run) refuseUnselectedMember(e *entry, group []*deletion) bool {
	byPosition := func(a, b *deletion) int { return r.snap.Position(a.Key) - r.snap.Position(b.Key) }
	for _, d := range slices.SortedFunc(slices.Values(group), byPosition) {
		switch {
		case r.mayChange(r.snap.Get(d.Key)):
			continue
		case r.ofSnippet(d.URN):
			r.reject(e, "%s cannot be replaced: %s would have to be replaced with it, and belongs to a snippet (`pulumi do`), "+
				"which deployctl does not run; update it with the Pulumi CLI", e.URN, d.URN)
		case r.excludes():
			r.reject(e, "%s cannot be replaced: %s would have to be replaced with it, and is excluded; exclude both, "+
				"or neither", e.URN, d.URN)
		default:
			r.reject(e, "%s cannot be replaced: %s would have to be replaced with it, and is not a target; target it "+
				"too, or use --target-dependents", e.URN, d.URN)
		}
		return true
	}
	return false
}

// refuseWantedMember fails an entry whose replacement would first delete a resource whose registration failed or was
// refused: nothing would create it again. It reports whether the entry failed.
func (r *Run) refuseWantedMember(e *entry, group []*deletion) bool {
	for _, d := range group {
		if r.wants(d.URN) && !r.snap.Get(d.Key).Delete {
			r.reject(e, "%s cannot be replaced: %s would have to be replaced with it, and could not be registered",
				e.URN, d.URN)
			return true
		}
	}
	return false
}

// deleteFirst deletes the members of a cascade and then the old resource of an entry, dependents first. The entry goes
// on when its old resource is deleted; the entries of members are planned again once theirs are. If copies stand in the
// way, they are swept first, and deleteFirst runs again with the same members.
//
// A member that the Cascade named is left out if something else has happened to it while the question was in flight:
// its state is gone, marked for deletion, pending its replacement already, or its own entry has decided.
func (r *Run) deleteFirst(e *entry, members []Dependent) {
	var group []*deletion
	for _, m := range members {
		state := r.snap.Get(m.Key)
		if state == nil || r.deletionOf[m.Key] != nil || state.PendingReplacement || r.decided(state.URN) {
			continue
		}
		group = append(group, r.newDeletion(state, e.URN))
	}
	for _, with := range r.replacedWith(e) {
		if !slices.ContainsFunc(group, func(d *deletion) bool { return d.Key == with.Key }) {
			group = append(group, r.newDeletion(with, e.URN))
		}
	}
	if r.refuseProtectedMember(e, group) || r.refuseUnselectedMember(e, group) ||
		r.refuseWantedMember(e, group) {
		return
	}
	ahead, along := r.copiesInTheWay(e, group)
	if r.refuseUnselectedMember(e, ahead) || r.refuseUnselectedMember(e, along) {
		return
	}
	if len(ahead) > 0 {
		r.sweep(e, members, ahead)
		return
	}
	for _, d := range group {
		r.replan(d)
	}
	group = append(append(group, along...), r.newDeletion(r.snap.Get(e.Old), e.URN))
	e.Members = nil
	r.become(e, stageClearing, 0)
	r.markForDeletion(group)
}

// replan discards the plan of a cascade member: it was made against a state that is being deleted. The entry goes back
// to held, where predecessor makes it wait until its state is pending replacement. It must be called before the group
// is marked; an entry whose decision is final cannot be moved back and is left alone.
func (r *Run) replan(d *deletion) {
	other := r.byURN[r.current(d.URN)]
	if other == nil || other.committed() {
		return
	}
	r.drop(other.Op)
	other.Plan, other.Old = nil, ""
	r.become(other, stageHeld, 0)
}

// replacedWith returns the stored resources that are replaced together with the entry's, by replaceWith or deletedWith,
// and whose own decision is not final. They join the cascade whatever their providers' Diffs say. If the old resource
// is not deleted first, both options take effect in force instead, when the entries of those resources are planned.
func (r *Run) replacedWith(e *entry) []*State {
	var out []*State
	r.snap.All(func(s *State) {
		if s.Key == e.Old || s.Delete || s.PendingReplacement || r.deletionOf[s.Key] != nil {
			return
		}
		names := func(u urn.URN) bool { return r.current(u) == e.URN }
		if (names(s.DeletedWith) || slices.ContainsFunc(s.ReplaceWith, names)) && !r.decided(s.URN) {
			out = append(out, s)
		}
	})
	return out
}

// deletedFirst creates the replacement once its old resource is deleted; it reports whether that is so.
// If one of the deletions fails, failDeletion fails the entry, so the wait always ends.
func (r *Run) deletedFirst(e *entry) bool {
	// The hooks of the deletion may still run.
	if old := r.snap.Get(e.Old); old == nil || !old.PendingReplacement || r.deletionOf[e.Old] != nil {
		return false
	}
	r.enqueue(e, false)
	return true
}
