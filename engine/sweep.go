package engine

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// A copy that waits for its deletion may depend on what a cascade is to delete. A provider may refuse to delete a
// resource while such a copy exists, and the live members of the cascade would then have been deleted for nothing. So
// the copies are deleted first: that is the sweep.

// copiesInTheWay returns the deletions of the copies that depend on the old resource of an entry or on a member of its
// group, in two parts. Those in ahead go before the group: nothing else uses them. Those in along go with it, because a
// member may use them. A copy that something else may use, which has not been registered yet, is in neither.
func (r *Run) copiesInTheWay(e *entry, group []*deletion) (ahead, along []*deletion) {
	copies := r.dependentCopies(e, group)
	if len(copies) == 0 {
		return nil, nil
	}
	// From the last copy to the first: a copy that uses another one stands after it, so the decision about the user is
	// known first.
	users := r.usersOfCopies()
	sweeps, goes := map[Key]bool{}, map[Key]bool{}
	for _, d := range group {
		goes[d.Key] = true
	}
	for _, k := range slices.Backward(copies) {
		s := r.snap.Get(k)
		d := &deletion{Key: k, URN: s.URN, Kind: StepDeleteReplaced, For: e.URN}
		if s.External {
			d.Kind = StepDiscardReplaced
		}
		all := func(set map[Key]bool) bool {
			return !slices.ContainsFunc(users[k], func(user Key) bool { return !set[user] })
		}
		switch {
		case all(sweeps):
			sweeps[k], goes[k] = true, true
			ahead = append(ahead, d)
		case all(goes):
			goes[k] = true
			along = append(along, d)
		}
	}
	return ahead, along
}

// dependentCopies returns the copies that refer to the old resource of an entry, to a member of its group, or to one
// another.
// One pass in snapshot order is enough, as in dependents. A copy that is marked for deletion goes already.
func (r *Run) dependentCopies(e *entry, group []*deletion) []Key {
	names := map[urn.URN]bool{r.current(r.snap.Get(e.Old).URN): true}
	for _, d := range group {
		names[r.current(d.URN)] = true
	}
	var copies []Key
	for _, k := range r.dependents(e.Old) {
		s := r.snap.Get(k)
		if !s.Delete || s.IsView() || r.deletionOf[k] != nil {
			continue
		}
		if slices.ContainsFunc(s.References(), func(u urn.URN) bool { return names[u] || names[r.current(u)] }) {
			names[r.current(s.URN)] = true
			copies = append(copies, k)
		}
	}
	return copies
}

// usersOfCopies returns, for every copy that waits for its deletion, the states that may use it: those that refer to
// its URN, stand after it, and have not been recorded since. So what may use a copy must not come to stand before it
// when one of them moves: moveDependents and keeping see to that.
func (r *Run) usersOfCopies() map[Key][]Key {
	users := map[Key][]Key{}
	r.snap.All(func(s *State) {
		if s.IsView() || r.recorded(s) {
			return
		}
		for _, k := range r.needs(s.Key) {
			if r.snap.Get(k).Delete && r.snap.Position(k) < r.snap.Position(s.Key) {
				users[k] = append(users[k], s.Key)
			}
		}
	})
	return users
}

// recorded reports that a registration of this epoch has recorded a live state, so that it uses what is live. What
// targets leave alone is as it was.
func (r *Run) recorded(s *State) bool {
	e := r.byURN[r.current(s.URN)]
	return e != nil && e.Stage == stageDone && e.New.Key == s.Key && !r.restricted()
}

// sweep deletes the copies that are deleted ahead of a cascade; the entry goes on when they are. No other cascade
// starts meanwhile, because the members were computed without it. The members are kept in the entry, because a sweep
// may last beyond a suspension; the sweeper is found again by its stage.
func (r *Run) sweep(e *entry, members []Dependent, ahead []*deletion) {
	e.Members, r.sweeper = members, e
	r.become(e, stageSweeping, 0)
	r.markForDeletion(ahead)
}

// swept goes on with a cascade once the copies in its way are deleted; it reports whether they are.
//
// The deletions that it waits for are those marked for its URN: sweep marked them, and the cascade itself marks none
// before deleteFirst runs again. One that fails fails the entry, and live members have not been touched.
func (r *Run) swept(e *entry) bool {
	for _, d := range r.Deletions {
		if d.For == e.URN && r.deletionOf[d.Key] == d {
			return false
		}
	}
	r.deleteFirst(e, e.Members)
	return true
}
