package snapshot

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// A state is stored with the names that it had when it was recorded; this file reads it by the names of now.

// stored returns a state with the names of now, as Pulumi stores it; see storedName. Until the update ends, a copy is
// known by the name that it had: targets and the references of other copies mean it by that.
func (s *Snapshot) stored(state State) State {
	if len(s.renames) == 0 {
		return state
	}
	name := s.Current
	if state.Delete {
		name = func(u urn.URN) urn.URN {
			keeps := func(k Key) bool {
				return s.Position(k) < s.Position(state.Key) && s.storedName(s.Get(k)) == u
			}
			if slices.ContainsFunc(s.copies[u], keeps) {
				return u
			}
			return s.Current(u)
		}
	}
	state.URN = s.storedName(&state)
	was := state.PropertyDependencies
	state.rename(name)
	if !equalProperties(was, state.PropertyDependencies) {
		state.PropertyDependencies = slices.DeleteFunc(state.PropertyDependencies, func(p PropertyDependency) bool {
			return len(p.URNs) == 0 // as in Pulumi
		})
	}
	if u, id := SplitReference(state.Provider); u != "" {
		u = name(u)
		if p := s.Provider(state.Provider); p != nil {
			u = s.storedName(p)
		}
		state.Provider = JoinReference(u, id)
	}
	return state
}

// storedName returns the URN under which a state is stored: that of now. So a copy that waits for its deletion has the
// URN of what took its place, unless that is of another type: its provider goes by the type in the URN.
func (s *Snapshot) storedName(state *State) urn.URN {
	now := s.Current(state.URN)
	if state.Delete && TypeOf(now) != state.Type {
		return state.URN
	}
	return now
}

// dropAliases removes, as Pulumi does, the former names that nothing needs any more. A former name stays while a copy
// that an earlier version stored bears it, or while a child is stored under a name that follows from it.
func dropAliases(states []State) {
	names := map[urn.URN][]urn.URN{} // by what is live
	for _, state := range states {
		if !state.Delete && len(state.Aliases) > 0 {
			names[state.URN] = state.Aliases
		}
	}
	needed := map[urn.URN]bool{}
	for _, state := range states {
		needed[state.URN] = true
		for _, a := range names[state.Parent] {
			needed[a] = needed[a] || !state.Delete && Follows(state.URN, a, state.Parent)
		}
	}
	for i := range states {
		state := &states[i]
		state.Aliases = slices.DeleteFunc(slices.Clone(state.Aliases), func(a urn.URN) bool {
			return state.Delete || !needed[a]
		})
		if len(state.Aliases) == 0 {
			state.Aliases = nil
		}
	}
}

// Renamed returns a state whose references are normalised: an aliased resource is known by its new name everywhere.
// Only what waits for its deletion goes on naming a copy that does, too: they must go in their order.
//
// States are stored with the names that they had when they were recorded, and renamed when they are read: a rename
// costs one delta, however many states refer to the name. It returns a copy; the state in the snapshot is not changed.
func (s *Snapshot) Renamed(state State) State {
	if len(s.renames) == 0 {
		return state
	}
	name := s.Current
	if state.Delete {
		name = func(u urn.URN) urn.URN {
			earlier := func(k Key) bool { return s.Position(k) < s.Position(state.Key) }
			if slices.ContainsFunc(s.copies[u], earlier) {
				return u
			}
			return s.Current(u)
		}
	}
	state.rename(name)
	if u, id := SplitReference(state.Provider); u != "" && s.identified(u, id) == nil {
		state.Provider = JoinReference(s.Current(u), id)
	}
	return state
}

// Current returns the newest name of a URN; renames never go in a circle, see Apply.
// Several renames may follow each other when a resource is renamed more than once before its copies are gone.
func (s *Snapshot) Current(u urn.URN) urn.URN {
	for to, ok := s.renames[u]; ok; to, ok = s.renames[u] {
		u = to
	}
	return u
}

// Provider returns the state that a provider reference means, waiting for deletion or not. The id in the reference
// tells a provider from its replacement, which has the same URN.
func (s *Snapshot) Provider(ref string) *State {
	u, id := SplitReference(ref)
	if state := s.identified(u, id); state != nil {
		return state
	}
	return s.identified(s.Current(u), id)
}

// identified returns the state with a URN and an id. It looks at copies too: a resource may still be managed by a
// Provider that has been replaced.
func (s *Snapshot) identified(u urn.URN, id string) *State {
	for _, k := range s.copies[u] {
		if state := s.Get(k); state != nil && state.ID == id {
			return state
		}
	}
	return nil
}
