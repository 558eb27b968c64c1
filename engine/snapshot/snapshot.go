package snapshot

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// slot is a place in the base or in the new list. Slots are never removed or reordered, so an index stays valid; Gone
// hides a state that was removed or moved, and keeps its contents for events that show what was before.
type slot struct {
	State State `json:"s"`
	Gone  bool  `json:"g,omitempty"`
	// Changed: a base state was set where it stands.
	Changed bool `json:"c,omitempty"`
}

// Snapshot is a base with deltas applied: what a checkpoint holds. Maps are for look-up only; every order comes from
// the two lists.
//
// A state that is written goes to the new list; what has not been reached stays in the base. The new list precedes the
// base, so at every moment the whole is a valid checkpoint if each state is recorded after what it refers to.
type Snapshot struct {
	base    []slot // in stored order; gone when removed or moved to the new list
	news    []slot // in order of completion
	place   map[Key]int
	live    map[urn.URN]Key    // the one state of a URN that does not wait for deletion
	copies  map[urn.URN][]Key  // every state of a URN
	views   map[urn.URN][]Key  // the views of an owner, by the name that they have stored
	pending []PendingOperation // in order of beginning; those that ended have Op 0
	ended   int                // how many of them
	renames map[urn.URN]urn.URN
	aliases []Delta // the renames, in order
}

// New starts from the states of a base in their stored order; the snapshot gives them their keys.
func New(base []State, pending []PendingOperation) *Snapshot {
	s := &Snapshot{
		base:    make([]slot, len(base)),
		place:   make(map[Key]int, len(base)),
		live:    make(map[urn.URN]Key, len(base)),
		copies:  make(map[urn.URN][]Key, len(base)),
		views:   map[urn.URN][]Key{},
		pending: slices.Clone(pending),
		renames: map[urn.URN]urn.URN{},
	}
	for i := range s.pending {
		s.pending[i].Op = -1 - i // apart from every operation of the update
	}
	for i, state := range base {
		state.Key = BaseKey(i)
		s.base[i].State = state
		s.index(state, i)
	}
	return s
}

// index makes a state findable. Base states are found at i, new ones at -1-i.
//
// Invariant: place has every key that the snapshot ever had; Get hides those that were removed.
// Invariant: live has the one state of a URN that does not wait for deletion; copies has all that are there.
func (s *Snapshot) index(state State, i int) {
	s.place[state.Key] = i
	s.copies[state.URN] = append(s.copies[state.URN], state.Key)
	if state.IsView() {
		s.views[state.ViewOf] = append(s.views[state.ViewOf], state.Key)
	}
	if !state.Delete {
		s.live[state.URN] = state.Key
	}
}

// Apply changes the snapshot by one delta. It is total: a delta about a state that is not there does nothing, so deltas
// can be applied that were saved twice. The core, the commit and recovery apply the same deltas and get the same
// snapshot.
func (s *Snapshot) Apply(d Delta) {
	switch d.Kind {
	case DeltaBegin:
		s.begin(*d.Pending)
	case DeltaEnd:
		s.end(d.Op)
	// The old state goes first: the new one may have the same key or be the live one of the same URN.
	case DeltaPut:
		for _, k := range d.Removes {
			s.remove(k)
		}
		s.put(*d.State)
	case DeltaKeep:
		for i := d.First; i < d.First+d.Count; i++ {
			s.keep(BaseKey(i))
		}
	case DeltaSet:
		s.set(*d.State)
	case DeltaRemove:
		for _, k := range d.Removes {
			s.remove(k)
		}
	// The references themselves are renamed when states are read.
	case DeltaAlias:
		s.renames[d.From] = d.To
		delete(s.renames, d.To) // so that names never go in a circle
		s.aliases = append(s.aliases, d)
	}
}

// put appends a state to the new list.
func (s *Snapshot) put(state State) {
	s.news = append(s.news, slot{State: state})
	s.index(state, -len(s.news))
}

// keep moves a base state to the end of the new list; a state that is there already stays where it is. Its key stays,
// so its values are still found in the base.
func (s *Snapshot) keep(k Key) {
	at := s.slot(k)
	if at == nil || at.Gone || s.place[k] < 0 {
		return
	}
	state := at.State
	at.Gone = true
	s.news = append(s.news, slot{State: state})
	s.place[k] = -len(s.news)
}

// set replaces a state where it stands, and makes it live or not as its Delete says. Its URN must not change, because
// it is indexed by that, and it must not come to refer to what stands behind it.
func (s *Snapshot) set(state State) {
	at := s.slot(state.Key)
	if at == nil || at.Gone {
		return
	}
	at.State, at.Changed = state, true
	switch {
	case !state.Delete:
		s.live[state.URN] = state.Key
	case s.live[state.URN] == state.Key:
		delete(s.live, state.URN)
	}
}

// remove takes a state out. Its slot stays, so that the positions of others do.
func (s *Snapshot) remove(k Key) {
	at := s.slot(k)
	if at == nil || at.Gone {
		return
	}
	at.Gone = true
	u := at.State.URN
	if s.live[u] == k {
		delete(s.live, u)
	}
	is := func(o Key) bool { return o == k }
	s.copies[u] = slices.DeleteFunc(s.copies[u], is)
	if owner := at.State.ViewOf; owner != "" {
		s.views[owner] = slices.DeleteFunc(s.views[owner], is)
	}
}

// begin adds a pending operation, or replaces the one with its number. Pending operations are few, as many as steps run
// at a time, so they are searched.
func (s *Snapshot) begin(p PendingOperation) {
	if i := slices.IndexFunc(s.pending, func(other PendingOperation) bool { return other.Op == p.Op }); i >= 0 {
		s.pending[i] = p
		return
	}
	s.pending = append(s.pending, p)
}

// end removes a pending operation. The slice is compacted once more than half of it is dead.
func (s *Snapshot) end(op int) {
	for i := range s.pending {
		if s.pending[i].Op == op {
			s.pending[i].Op = 0
			s.ended++
			break
		}
	}
	if s.ended > len(s.pending)/2 {
		s.pending, s.ended = s.Pending(), 0
	}
}
