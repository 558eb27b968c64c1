package snapshot

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Repair returns the states of a broken snapshot in an order in which everything stands behind what it refers to, and
// Without references to what is not there. What is in order keeps its place. It repairs no more than that: a state that
// stands there twice or has no provider is beyond it, which Verify tells.
//
// The commit calls it when a snapshot breaks an invariant, so that a fault of this package does not make the stack
// unusable. Verify must be called on the result.
func Repair(states []State) []State {
	r := repair{states: states, copies: map[urn.URN][]int{}, reached: make([]bool, len(states))}
	for i, s := range states {
		r.copies[s.URN] = append(r.copies[s.URN], i)
	}
	for i := range states {
		r.place(i)
	}
	return r.out
}

// repair is a Repair at work.
type repair struct {
	states  []State
	copies  map[urn.URN][]int // indexes, in order
	reached []bool
	out     []State
}

// place puts a state out, behind what it refers to; of what refers to each other, the first comes last. A state is
// marked as reached before its references are followed, which ends the recursion in a circle. A provider that is
// missing stays named, since Verify must report it.
func (r *repair) place(i int) {
	if r.reached[i] {
		return
	}
	r.reached[i] = true
	providerURN, id := SplitReference(r.states[i].Provider)
	gone := func(u urn.URN) bool { return u != "" && u != providerURN && len(r.copies[u]) == 0 }
	s := r.states[i]
	if slices.ContainsFunc(s.References(), gone) {
		s = s.Without(gone)
	}
	for _, u := range s.References() {
		if j := r.meant(u, u == providerURN, id); j >= 0 {
			r.place(j)
		}
	}
	r.out = append(r.out, s)
}

// meant is the copy of a URN that a reference is about: of a provider the one with the id, else the one that stays, or
// -1. One that stands already will do.
func (r *repair) meant(u urn.URN, provider bool, id string) int {
	best := -1
	for _, j := range r.copies[u] {
		switch {
		case provider && r.states[j].ID != id:
		case r.reached[j]:
			return -1
		case best < 0, !r.states[j].Delete && r.states[best].Delete:
			best = j
		}
	}
	return best
}
