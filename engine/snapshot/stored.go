package snapshot

import "slices"

// Stored is how a snapshot differs from its base, as a suspended run stores it. Builds of one revision resume each
// other's runs, so the names of its fields stay; a field may be added if its zero value means what was true before.
type Stored struct {
	Base    []slot             `json:"base,omitempty"` // base states that were changed where they stand
	Gone    []stretch          `json:"gone,omitempty"` // base states that are gone or kept, run-length packed
	News    []slot             `json:"news,omitempty"`
	Pending []PendingOperation `json:"pending,omitempty"`
	Aliases []Delta            `json:"aliases,omitempty"`
}

// stretch is a stretch of base indexes.
type stretch struct{ First, Count int }

// Store returns the stored form of a snapshot. If its deltas are saved, its states refer to the values where the saves
// put them; those of a preview, which saves nothing, are carried as they are.
func (s *Snapshot) Store(saved bool) Stored {
	stored := func(at slot) slot {
		if saved {
			at.State = at.State.Saved()
		}
		return at
	}
	out := Stored{Pending: s.Pending(), Aliases: s.aliases}
	for i := range s.base {
		at := &s.base[i]
		switch n := len(out.Gone); {
		case !at.Gone:
			if at.Changed {
				out.Base = append(out.Base, stored(*at))
			}
		case n > 0 && out.Gone[n-1].First+out.Gone[n-1].Count == i:
			out.Gone[n-1].Count++
		default:
			out.Gone = append(out.Gone, stretch{i, 1})
		}
	}
	for _, at := range s.news {
		out.News = append(out.News, stored(at))
	}
	return out
}

// Saved returns a state that refers to its bags where a save has put them. What a refresh made of a base state has no
// operation to be found under, and is carried as it is. The snapshot keeps the values.
func (s State) Saved() State {
	if _, made := s.Key.Op(); !made {
		return s
	}
	for _, part := range Parts {
		if bag := s.Bag(part); bag.Inline != nil {
			bag.Inline, bag.Ref = nil, s.Key.Ref(part)
		}
	}
	return s
}

// Restore rebuilds the snapshot that Store was called on. Base and pending are those that New was given then.
//
// What is gone leaves the base first, because a base state that was kept has the same key in the new list. The new list
// is rebuilt slot by slot, with those that are gone, so that positions are what they were. Renames come last, and their
// order is that in which they happened.
func Restore(base []State, pending []PendingOperation, stored Stored) *Snapshot {
	s := New(base, pending)
	for _, g := range stored.Gone {
		for i := g.First; i < g.First+g.Count; i++ {
			s.remove(BaseKey(i))
		}
	}
	for _, at := range stored.Base {
		s.set(at.State)
	}
	for _, at := range stored.News {
		s.put(at.State)
		if at.Gone {
			s.remove(at.State.Key)
		}
	}
	s.pending = slices.Clone(stored.Pending)
	for _, d := range stored.Aliases {
		s.Apply(d)
	}
	return s
}
