package engine

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

// NewSnapshot starts from the states of a base in their stored order; the snapshot gives them their keys.
func NewSnapshot(base []State, pending []PendingOperation) *Snapshot {
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

// position is where a state stands in snapshot order: the new list precedes what is left of the base. Positions change
// when states move or the new list grows, so they are compared at once and never kept. The key must be one that the
// snapshot has or had.
func (s *Snapshot) position(k Key) int {
	if i := s.place[k]; i < 0 {
		return -1 - i
	}
	return len(s.news) + s.place[k]
}

// stranded reports that a state refers to something of which no copy precedes it, which no stored snapshot may have.
// The state must be in the snapshot under its key.
func (s *Snapshot) stranded(state State) bool {
	state = s.renamed(state)
	earlier := func(k Key) bool { return s.position(k) < s.position(state.Key) }
	return slices.ContainsFunc(state.References(), func(u urn.URN) bool {
		return !slices.ContainsFunc(s.copies[u], earlier)
	})
}

// index makes a state findable. Base states are found at i, new ones at -1-i.
//
// Invariant: place has every key that the snapshot ever had; Get hides those that were removed.
// Invariant: live has the one state of a URN that does not wait for deletion; copies has all that are there.
func (s *Snapshot) index(state State, i int) {
	s.place[state.Key] = i
	s.copies[state.URN] = append(s.copies[state.URN], state.Key)
	if state.isView() {
		s.views[state.ViewOf] = append(s.views[state.ViewOf], state.Key)
	}
	if !state.Delete {
		s.live[state.URN] = state.Key
	}
}

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
	return out, s.unfinished()
}

// stored returns a state with the names of now, as Pulumi stores it; see storedName. Until the update ends, a copy is
// known by the name that it had: targets and the references of other copies mean it by that.
func (s *Snapshot) stored(state State) State {
	if len(s.renames) == 0 {
		return state
	}
	name := s.current
	if state.Delete {
		name = func(u urn.URN) urn.URN {
			keeps := func(k Key) bool {
				return s.position(k) < s.position(state.Key) && s.storedName(s.Get(k)) == u
			}
			if slices.ContainsFunc(s.copies[u], keeps) {
				return u
			}
			return s.current(u)
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
		if p := s.provider(state.Provider); p != nil {
			u = s.storedName(p)
		}
		state.Provider = JoinReference(u, id)
	}
	return state
}

// storedName returns the URN under which a state is stored: that of now. So a copy that waits for its deletion has the
// URN of what took its place, unless that is of another type: its provider goes by the type in the URN.
func (s *Snapshot) storedName(state *State) urn.URN {
	now := s.current(state.URN)
	if state.Delete && typeOf(now) != state.Type {
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
			needed[a] = needed[a] || !state.Delete && follows(state.URN, a, state.Parent)
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

// begin adds a pending operation, or replaces the one with its number. Pending operations are few, as many as steps run
// at a time, so they are searched.
func (s *Snapshot) begin(p PendingOperation) {
	if i := slices.IndexFunc(s.pending, func(other PendingOperation) bool { return other.Op == p.Op }); i >= 0 {
		s.pending[i] = p
		return
	}
	s.pending = append(s.pending, p)
}

// isPending reports that an operation is pending.
func (s *Snapshot) isPending(op int) bool {
	return slices.ContainsFunc(s.pending, func(p PendingOperation) bool { return p.Op == op })
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
		s.pending, s.ended = s.unfinished(), 0
	}
}

// unfinished returns the pending operations.
func (s *Snapshot) unfinished() []PendingOperation {
	var out []PendingOperation
	for _, p := range s.pending {
		if p.Op != 0 {
			out = append(out, p)
		}
	}
	return out
}

// renamed returns a state whose references are normalised: an aliased resource is known by its new name everywhere.
// Only what waits for its deletion goes on naming a copy that does, too: they must go in their order.
//
// States are stored with the names that they had when they were recorded, and renamed when they are read: a rename
// costs one delta, however many states refer to the name. It returns a copy; the state in the snapshot is not changed.
func (s *Snapshot) renamed(state State) State {
	if len(s.renames) == 0 {
		return state
	}
	name := s.current
	if state.Delete {
		name = func(u urn.URN) urn.URN {
			earlier := func(k Key) bool { return s.position(k) < s.position(state.Key) }
			if slices.ContainsFunc(s.copies[u], earlier) {
				return u
			}
			return s.current(u)
		}
	}
	state.rename(name)
	if u, id := SplitReference(state.Provider); u != "" && s.identified(u, id) == nil {
		state.Provider = JoinReference(s.current(u), id)
	}
	return state
}

// current returns the newest name of a URN; renames never go in a circle, see Apply.
// Several renames may follow each other when a resource is renamed more than once before its copies are gone.
func (s *Snapshot) current(u urn.URN) urn.URN {
	for to, ok := s.renames[u]; ok; to, ok = s.renames[u] {
		u = to
	}
	return u
}

// provider returns the state that a provider reference means, waiting for deletion or not. The id in the reference
// tells a provider from its replacement, which has the same URN.
func (s *Snapshot) provider(ref string) *State {
	u, id := SplitReference(ref)
	if state := s.identified(u, id); state != nil {
		return state
	}
	return s.identified(s.current(u), id)
}

// identified returns the state with a URN and an id. It looks at copies too: a resource may still be managed by a
// provider that has been replaced.
func (s *Snapshot) identified(u urn.URN, id string) *State {
	for _, k := range s.copies[u] {
		if state := s.Get(k); state != nil && state.ID == id {
			return state
		}
	}
	return nil
}
