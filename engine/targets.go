package engine

import (
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Targets restrict an update as Pulumi's --target does:
//
//  - Providers, reads and the stack's own resource always take part, because targets need them.
//  - A stored resource outside the targets stays as it is stored, with its old references, whatever its goal is now.
//  - A resource outside the targets that is not stored is left out, and no target may refer to it.
//  - Only targets are deleted. What still refers to a target stops its deletion unless dependents go along.
//
// An untargeted resource that stays must still stand behind all that it refers to. Therefore what it refers to is moved
// to the new list before it (keepReferences), even if the program does not register it any more, and is then not
// deleted (mark.Kept).

// matches reports whether a URN is named by one of the patterns: "*" stands for anything within a part between colons,
// "**" for anything.
func (r *Run) matches(patterns []string, u urn.URN) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob(p, string(u)) })
}

// glob reports whether a text matches a pattern; "**" may cross "::", "*" may not. Its time is bounded by the product
// of their lengths: a pattern is what a user has written.
func glob(pattern, s string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == s
	}
	reached := make([]bool, len(s)+1) // the lengths of s that the pattern matches so far
	reached[0] = true
	for pattern != "" {
		next := make([]bool, len(s)+1)
		if pattern[0] != '*' {
			for i := range len(s) {
				next[i+1] = reached[i] && s[i] == pattern[0]
			}
			pattern, reached = pattern[1:], next
			continue
		}
		deep, open := strings.HasPrefix(pattern, "**"), false
		for i := range next {
			open = open || reached[i]
			next[i] = open
			open = open && (deep || !strings.HasPrefix(s[i:], "::"))
		}
		pattern, reached = strings.TrimLeft(pattern, "*"), next
	}
	return reached[len(s)]
}

// matchesTargets reports whether a stored URN takes part in the update. Without targets everything does.
func (r *Run) matchesTargets(u urn.URN) bool {
	return len(r.goal.Targets) == 0 || r.matches(r.goal.Targets, u)
}

// targeted reports whether an entry takes part in the update. Providers, reads and the stack always do.
func (r *Run) targeted(e *entry) bool {
	return r.outsideTargeting(e) || e.Read || r.isTarget(e)
}

// outsideTargeting reports that targets do not concern an entry at all.
func (r *Run) outsideTargeting(e *entry) bool {
	return len(r.goal.Targets) == 0 || IsProvider(e.New.Type) || e.New.Type == rootType
}

// isTarget reports that an entry is named by the targets or, if dependents go with them, refers to one that is.
// markTarget must have run for what the entry refers to: the marks make it transitive.
func (r *Run) isTarget(e *entry) bool {
	return r.matches(r.goal.Targets, e.URN) || r.goal.TargetDependents &&
		slices.ContainsFunc(e.New.References(), func(u urn.URN) bool { return r.marked(u).Targeted })
}

// markTarget records whether an entry is a target, for those that depend on it. What a target refers to then precedes
// it, although the program may not register it.
func (r *Run) markTarget(e *entry) {
	if r.outsideTargeting(e) {
		return
	}
	// A mark of an earlier epoch may say otherwise, because the references of the goal may differ.
	if is := r.isTarget(e); is != r.marked(e.URN).Targeted {
		r.mark(e.URN).Targeted = is
	}
	if r.targeted(e) {
		r.markKept(r.keepReferences(e.New))
	}
}

// markKept records what was moved ahead of a state that refers to it.
func (r *Run) markKept(kept []urn.URN) {
	for _, u := range kept {
		r.mark(u).Kept = true
	}
}

// leaveUntargeted keeps a resource outside the targets as it was, whatever the program declares now. One that is not
// stored is left out: the program gets its inputs, and everything else of it is unknown. Under a former name it is
// recorded under the new one, because the program and other states refer to it by that.
func (r *Run) leaveUntargeted(e *entry, old *State) {
	if old == nil {
		r.mark(e.URN).LeftOut = true
		r.finish(e, Reply{Object: e.New.Inputs, Result: ResultSkip, Unknown: true})
		return
	}
	r.markKept(r.keepReferences(*old))
	op := r.newOp()
	e.Kind, e.New = StepSame, *old
	e.New.URN = e.URN
	if i, ok := r.snap.place[old.Key]; ok && i >= 0 && old.URN == e.URN {
		r.change(Delta{Kind: DeltaKeep, First: i, Count: 1})
	} else if old.URN != e.URN {
		e.New.Aliases = []urn.URN{old.URN}
		r.record(e, op)
	}
	r.count(StepSame, e.URN)
	r.emitSame(op, e)
	r.done(e, nil)
}

// keepReferences moves everything that a state refers to, as it is stored, to the new list, so that it precedes the
// state; that includes a provider that has been replaced since. It returns the URNs of the live states that it found by
// reference and moved, however far. It must be called before the state itself is moved or recorded.
func (r *Run) keepReferences(s State) []urn.URN {
	k := keeping{r: r, seen: map[urn.URN]bool{}}
	k.references(s)
	return k.moved
}

// keep moves a stored resource to the new list as it is, behind what it refers to.
func (r *Run) keep(key Key) {
	k := keeping{r: r, seen: map[urn.URN]bool{}}
	k.state(key)
}

// keeping is keepReferences or keep at work. By their URNs, copies from different times can refer to each other, so
// seen ends what would be an endless recursion.
type keeping struct {
	r     *Run
	seen  map[urn.URN]bool
	moved []urn.URN
}

func (k *keeping) references(s State) {
	snap := k.r.snap
	for _, u := range s.References() {
		key, ok := snap.live[u]
		moved := func(copied Key) bool { return snap.place[copied] < 0 }
		switch copies := snap.copies[u]; {
		case k.seen[u] || ok && moved(key):
			continue
		case ok:
			k.moved = append(k.moved, u)
		case len(copies) > 0 && !slices.ContainsFunc(copies, moved):
			key = copies[0] // only copies that wait for their deletion are left, and all stand in the base
		default:
			continue
		}
		k.seen[u] = true
		k.state(key)
	}
	if p := snap.provider(s.Provider); p != nil {
		k.state(p.Key)
	}
}

// state moves a state behind its references, unless it stands in the new list already.
func (k *keeping) state(key Key) {
	if i := k.r.snap.place[key]; i >= 0 {
		k.references(*k.r.snap.Get(key))
		k.r.change(Delta{Kind: DeltaKeep, First: i, Count: 1})
	}
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

// skippedReference returns a resource that the entry needs and that targets leave out; "" when there is none.
func (r *Run) skippedReference(e *entry) urn.URN {
	for _, u := range e.Reg.references() {
		if r.marked(u).LeftOut {
			return u
		}
	}
	return ""
}

// circularReference returns a resource that the entry needs and that, left alone by targets, still depends on what the
// entry is to change, however far: no snapshot could put one of them before the other.
func (r *Run) circularReference(e *entry) urn.URN {
	if len(r.goal.Targets) == 0 || e.Old == "" {
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
		now := r.snap.renamed(*state)
		return state.Key == e.Old || slices.ContainsFunc(now.References(), leads)
	}
	for _, u := range e.Reg.references() {
		if leads(u) {
			return u
		}
	}
	return ""
}

// mayChange reports whether targets let a stored resource be deleted, replaced with another, or refreshed. Whether a
// dependent may depends on the marks of what it refers to: go through states in snapshot order, and call markDependent
// for each that may change before asking about the next.
func (r *Run) mayChange(s *State) bool {
	if r.matchesState(s) {
		return true
	}
	target := func(u urn.URN) bool { return r.marked(u).Targeted || r.matches(r.goal.Targets, u) }
	return r.goal.TargetDependents && slices.ContainsFunc(s.References(), func(u urn.URN) bool {
		return target(u) || target(r.current(u))
	})
}

// matchesState reports whether targets name a stored resource; a replaced copy keeps its old name.
func (r *Run) matchesState(s *State) bool {
	return r.matchesTargets(s.URN) || r.matchesTargets(r.current(s.URN))
}

// markDependent records that a stored resource may change although no target names it, so that its dependents may, too.
// A state that targets name needs no mark: mayChange asks the patterns themselves.
func (r *Run) markDependent(s *State) {
	if !r.matchesState(s) {
		r.mark(s.URN).Targeted = true
	}
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
		if p := r.snap.provider(s.Provider); p != nil && p.Delete && !dying[s.Key] {
			manages[p.Key] = true
		}
	})
	return slices.DeleteFunc(group, func(d *deletion) bool { return manages[d.Key] })
}

// refuseReferenced returns the group of deletions or, if resources outside the targets still depend on one of them,
// none: then the update fails with an error for each.
//
// Nothing of the group is deleted then, not even what nobody refers to, so that the user can decide about all of it.
func (r *Run) refuseReferenced(group []*deletion) []*deletion {
	if len(r.goal.Targets) == 0 {
		return group
	}
	group = r.withoutManagers(group)
	dying := map[urn.URN]bool{}
	byKey := map[Key]bool{}
	for _, d := range group {
		byKey[d.Key] = true
		if d.Kind == StepDelete {
			dying[d.URN] = true
		}
	}
	needed := map[urn.URN]bool{}
	r.snap.All(func(s *State) {
		for _, u := range s.References() {
			u = r.current(u)
			if !byKey[s.Key] && dying[u] && !needed[u] {
				needed[u] = true
				r.diagnose("error", u, "%s would be deleted, but %s depends on it and is not a target; target it "+
					"too, or use "+
					"--target-dependents", u, s.URN)
				r.noteError("a resource outside the targets depends on one that would be deleted")
			}
		}
	})
	if len(needed) == 0 {
		return group
	}
	return nil
}
