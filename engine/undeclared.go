package engine

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// deleteUnregistered marks for deletion, once the program has ended well, every state that waits for its deletion or
// that the program did not register. In a destroy that is every state. Targets, and after an error what is still
// referred to, take states out.
//
// The cases follow Pulumi: a copy is deleted as "delete-replaced", which is not protected; an external state is only
// forgotten; a state that is pending its replacement has been deleted already, and only its entry goes.
func (r *Run) deleteUnregistered() {
	var group []*deletion
	r.snap.All(func(s *State) {
		if s.IsView() || !r.mayChange(s) {
			return
		}
		d := &deletion{Key: s.Key, URN: s.URN}
		switch {
		case s.Delete && s.External:
			d.Kind = StepDiscardReplaced
		case s.Delete:
			d.Kind = StepDeleteReplaced
		case r.goal.Kind == KindUp && (r.registered(s.URN) || r.wants(s.URN)):
			return
		case s.PendingReplacement:
			d.Kind = StepRemovePendingReplace
		case s.External:
			d.Kind = StepReadDiscard
		default:
			d.Kind = StepDelete
		}
		group = append(group, d)
	})
	before := r.FirstError
	if group = r.withoutNeeded(r.refuseReferenced(group)); r.refuseUnplanned(group) {
		return
	}
	if r.FirstError == before { // nothing was refused
		r.keepLeftAlone(group)
	}
	r.markForDeletion(group)
	r.reportProtected()
	r.reportSnippets()
}

// keepLeftAlone moves what a restricted update leaves alone, and the program did not register, to the new list with its
// copies: as in Pulumi, before the copies of what it registered.
func (r *Run) keepLeftAlone(group []*deletion) {
	if !r.restricted() {
		return
	}
	dying := map[Key]bool{}
	for _, d := range group {
		dying[d.Key] = true
	}
	for i := range r.snap.BaseLen() {
		s := r.snap.BaseAt(i)
		copied := s.Delete && r.registered(s.URN)
		if _, stays := r.snap.InBase(s.Key); stays && r.snap.Get(s.Key) != nil && !s.IsView() && !copied && !dying[s.Key] {
			r.keep(s.Key)
		}
	}
}

// reportProtected says how many protected resources --exclude-protected has kept.
func (r *Run) reportProtected() {
	if !r.goal.ExcludeProtected {
		return
	}
	n := 0
	r.snap.All(func(s *State) {
		if s.Protect && !s.Delete {
			n++
		}
	})
	if n > 0 {
		r.diagnose("info", "", "protected resources that stay, with what they depend on: %d", n)
	}
}

// withoutNeeded takes out of a group what must stay because something that stays refers to it. That happens only after
// an error, because a resource that could not be updated still refers to what it did before, and with excludes.
// Otherwise everything that stays was recorded with the references of its goal, which name only what is registered.
func (r *Run) withoutNeeded(group []*deletion) []*deletion {
	if r.FirstError == "" && !r.excludes() {
		return group
	}
	dying := make(map[Key]bool, len(group))
	for _, d := range group {
		dying[d.Key] = true
	}
	states := make([]*State, 0, len(group))
	r.snap.All(func(s *State) { states = append(states, s) })
	// From the last state to the first: what stays keeps what it needs, which in turn keeps what that needs.
	for _, s := range slices.Backward(states) {
		if dying[s.Key] || s.IsView() {
			continue
		}
		for _, k := range r.needs(s.Key) {
			if r.snap.Position(k) < r.snap.Position(s.Key) {
				delete(dying, k)
			}
		}
	}
	return slices.DeleteFunc(group, func(d *deletion) bool { return !dying[d.Key] })
}

// registered reports that the program registered the URN, or what the URN is now called, in the epoch that ended well,
// or that something which it registered needs it.
func (r *Run) registered(u urn.URN) bool {
	return r.byURN[u] != nil || r.marked(u).ClaimedBy != "" || r.marked(u).Kept
}
