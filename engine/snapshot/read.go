package snapshot

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Nothing in this file changes a snapshot.

// Position is where a state stands in snapshot order: the new list precedes what is left of the base. Positions change
// when states move or the new list grows, so they are compared at once and never kept. The key must be one that the
// snapshot has or had.
func (s *Snapshot) Position(k Key) int {
	if i := s.place[k]; i < 0 {
		return -1 - i
	}
	return len(s.news) + s.place[k]
}

// Stranded reports that a state refers to something of which no copy precedes it, which no stored snapshot may have.
// The state must be in the snapshot under its key.
func (s *Snapshot) Stranded(state State) bool {
	state = s.Renamed(state)
	earlier := func(k Key) bool { return s.Position(k) < s.Position(state.Key) }
	return slices.ContainsFunc(state.References(), func(u urn.URN) bool {
		return !slices.ContainsFunc(s.copies[u], earlier)
	})
}

// Was returns the state with a key as it is or, if it is not there any more, as it was last; nil for a key that the
// snapshot never had. The state must not be changed, and the pointer holds until the next delta.
func (s *Snapshot) Was(k Key) *State {
	if at := s.slot(k); at != nil {
		return &at.State
	}
	return nil
}

// Changed reports whether a base state was set where it stands.
func (s *Snapshot) Changed(k Key) bool { at := s.slot(k); return at != nil && at.Changed }

// InBase returns the index at which a state stands in the base, or stood when it was removed; false when it has moved
// to the new list, or never was in the base.
func (s *Snapshot) InBase(k Key) (index int, ok bool) {
	i, known := s.place[k]
	return i, known && i >= 0
}

// InNew returns the index at which a state stands in the new list, or stood when it was removed; false when it was
// never there.
func (s *Snapshot) InNew(k Key) (index int, ok bool) {
	i := s.place[k]
	return -1 - i, i < 0
}

// BaseLen is how many states the base had.
func (s *Snapshot) BaseLen() int { return len(s.base) }

// BaseAt returns a state of the base by its index: as it is, or as it was when it left the base. It must not be
// changed.
func (s *Snapshot) BaseAt(i int) *State { return &s.base[i].State }

// NewLen is how many states were put into the new list.
func (s *Snapshot) NewLen() int { return len(s.news) }

// NewAt returns a copy of a state in the new list by its index, and whether it is still there.
func (s *Snapshot) NewAt(i int) (State, bool) { return s.news[i].State, !s.news[i].Gone }

// LiveKey returns the key of the state of a URN that does not wait for deletion.
func (s *Snapshot) LiveKey(u urn.URN) (Key, bool) {
	k, ok := s.live[u]
	return k, ok
}

// Copies returns the keys of all states of a URN. The list must not be changed.
func (s *Snapshot) Copies(u urn.URN) []Key { return s.copies[u] }

// HasViews reports whether there ever was a view.
func (s *Snapshot) HasViews() bool { return len(s.views) > 0 }

// Views returns the keys of the views of an owner, by the name of it that they have stored. The list must not be
// changed.
func (s *Snapshot) Views(owner urn.URN) []Key { return s.views[owner] }

// HasRenames reports whether a URN was renamed.
func (s *Snapshot) HasRenames() bool { return len(s.renames) > 0 }

// slot returns the place of a key, even if its state is gone; nil for a key that the snapshot never had. The pointer
// holds until the next delta.
func (s *Snapshot) slot(k Key) *slot {
	i, ok := s.place[k]
	switch {
	case !ok:
		return nil
	case i >= 0:
		return &s.base[i]
	default:
		return &s.news[-1-i]
	}
}

// Get returns the state with a key; nil when it is not there (any more). The state must not be changed: make a copy,
// and record that by a delta. The pointer holds until the next delta.
func (s *Snapshot) Get(k Key) *State {
	if at := s.slot(k); at != nil && !at.Gone {
		return &at.State
	}
	return nil
}

// Live returns the state of a URN that does not wait for deletion; nil when there is none.
func (s *Snapshot) Live(u urn.URN) *State {
	if k, ok := s.live[u]; ok {
		return s.Get(k)
	}
	return nil
}

// All visits every state in snapshot order: the new list, then what is left of the base. The visitor must not change
// the snapshot: collect what is to be changed, then change it.
func (s *Snapshot) All(visit func(*State)) {
	for _, list := range [][]slot{s.news, s.base} {
		for i := range list {
			if !list[i].Gone {
				visit(&list[i].State)
			}
		}
	}
}

// States returns the states in snapshot order and the pending operations, as a checkpoint holds them. Verify checks it.
func (s *Snapshot) States() ([]State, []PendingOperation) {
	out := make([]State, 0, len(s.base)+len(s.news))
	s.All(func(state *State) { out = append(out, s.stored(*state)) })
	dropAliases(out)
	return out, s.Pending()
}

// IsPending reports that an operation is pending.
func (s *Snapshot) IsPending(op int) bool {
	return slices.ContainsFunc(s.pending, func(p PendingOperation) bool { return p.Op == op })
}

// Pending returns the pending operations.
func (s *Snapshot) Pending() []PendingOperation {
	var out []PendingOperation
	for _, p := range s.pending {
		if p.Op != 0 {
			out = append(out, p)
		}
	}
	return out
}

// Ancestors adds the live states of the new list to which a state refers, however far.
func (s *Snapshot) Ancestors(state State, to map[Key]bool) {
	wanted := map[urn.URN]bool{}
	want := func(state State) {
		for _, u := range state.References() {
			wanted[u] = true
		}
	}
	want(s.Renamed(state))
	for i := range s.news {
		at := &s.news[len(s.news)-1-i]
		if at.Gone || at.State.Delete {
			continue
		}
		if other := s.Renamed(at.State); wanted[other.URN] {
			to[other.Key] = true
			want(other)
		}
	}
}
