package engine

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Who writes the marks that hold for the whole update:
//
//  Done       done, when an entry has ended well; a later epoch replaces it when it decides otherwise
//  Replaced   record, when a replacement is stored; force goes by it, for replaceWith as well
//  Deleted    deleted, when a delete step of the delete phase has ended
//  Seed       settlePending; record removes it once the create is stored
//  Since      settlePending, with Seed
//  Creates    record, and found
//  Undecided  leavePending, when a create is left as a pending operation
//  Unsure     settlePending, in an update that only settles
//  Named      markNamed for entries, mayChange for stored states

// mark is what a Run knows about one URN. The first group holds for the whole update, whichever epoch learned it, so
// that a program that starts again repeats nothing. The second group, inEpoch, is forgotten when an epoch begins.
//
// Invariant: if u has Claims, the mark of that name has ClaimedBy u.
type mark struct {
	Done      *finished // how its registration ended
	Replaced  bool      // another resource took the place of the stored one
	Deleted   bool      // so what is deletedWith it goes without a call
	Seed      []byte    // of its pending create
	Since     int       // the version that began that
	Creates   int       // that were recorded; each gets a seed of its own
	Undecided bool      // its create was left undecided: it must not be made again
	Unsure    bool      // an earlier update ended while it was updating or deleting it
	Named     bool      // by --target or --exclude, itself or what it depends on; see namesOneOf
	inEpoch
}

// inEpoch is what the program of this epoch has said about a URN. It is forgotten as a whole when an epoch begins,
// because another start of the program may declare something else.
type inEpoch struct {
	ClaimedBy urn.URN // the URN that continues the resource stored under this name
	Claims    urn.URN // the name that the resource of this URN was stored under
	LeftOut   bool    // --target or --exclude leaves its create out
	Kept      bool    // it was moved ahead of something that refers to it, so it stays
	Wanted    bool    // it is stored, and its registration failed or was refused: it stays
}

// finished remembers how a URN's registration ended, so that the same goal in a later epoch gets the same answer.
//
// The answer holds only while Key is still the live state of the URN, see isLive. Kind is that of the step which was
// made, for the event log.
type finished struct {
	Digest  string
	Key     Key
	Kind    StepKind
	Stables []string
	Hooked  bool `json:",omitempty"` // the after hooks of the component have run
}

// marked returns a copy of what is known about a URN; the zero mark when nothing is. It is for reading, and makes no
// mark: mark is for writing.
func (r *Run) marked(u urn.URN) mark {
	if m := r.marks[u]; m != nil {
		return *m
	}
	return mark{}
}

// mark returns the mark of a URN to write to; it makes one if there is none.
func (r *Run) mark(u urn.URN) *mark {
	m := r.marks[u]
	if m == nil {
		m = &mark{}
		r.marks[u] = m
	}
	return m
}

// forgetEpoch removes what the program of the last epoch has said.
func (r *Run) forgetEpoch() {
	each(r.marks, func(_ urn.URN, m *mark) { m.inEpoch = inEpoch{} })
}

// storedMarks is how a suspended run holds its marks: a map for each fact. Its names stay, because the builds of one
// revision resume each other's runs.
type storedMarks struct {
	Done     map[urn.URN]*finished
	Replaced map[urn.URN]bool
	Gone     map[urn.URN]bool
	Seeds    map[urn.URN][]byte
	Since    map[urn.URN]int `json:",omitempty"`
	Made     map[urn.URN]int
	Doubtful map[urn.URN]bool
	Targeted map[urn.URN]bool
	Aliased  map[urn.URN]urn.URN
	AliasOf  map[urn.URN]urn.URN
	Skipped  map[urn.URN]bool
	Kept     map[urn.URN]bool
	Wanted   []urn.URN `json:",omitempty"`
	Unsure   []urn.URN `json:",omitempty"`
}

// storeMarks returns the stored form of marks. Facts that have their zero value are left out.
func storeMarks(marks map[urn.URN]*mark) storedMarks {
	s := storedMarks{
		Done: map[urn.URN]*finished{}, Replaced: map[urn.URN]bool{}, Gone: map[urn.URN]bool{},
		Seeds: map[urn.URN][]byte{}, Since: map[urn.URN]int{}, Made: map[urn.URN]int{}, Doubtful: map[urn.URN]bool{},
		Targeted: map[urn.URN]bool{}, Aliased: map[urn.URN]urn.URN{}, AliasOf: map[urn.URN]urn.URN{},
		Skipped: map[urn.URN]bool{}, Kept: map[urn.URN]bool{},
	}
	each(marks, func(u urn.URN, m *mark) {
		put(s.Done, u, m.Done, m.Done != nil)
		put(s.Replaced, u, true, m.Replaced)
		put(s.Gone, u, true, m.Deleted)
		put(s.Seeds, u, m.Seed, m.Seed != nil)
		put(s.Since, u, m.Since, m.Since > 0)
		put(s.Made, u, m.Creates, m.Creates > 0)
		put(s.Doubtful, u, true, m.Undecided)
		put(s.Targeted, u, true, m.Named)
		put(s.Aliased, u, m.ClaimedBy, m.ClaimedBy != "")
		put(s.AliasOf, u, m.Claims, m.Claims != "")
		put(s.Skipped, u, true, m.LeftOut)
		put(s.Kept, u, true, m.Kept)
		if m.Wanted {
			s.Wanted = append(s.Wanted, u)
		}
		if m.Unsure {
			s.Unsure = append(s.Unsure, u)
		}
	})
	return s
}

// put stores a fact about a URN, if it is known.
func put[V any](facts map[urn.URN]V, u urn.URN, fact V, known bool) {
	if known {
		facts[u] = fact
	}
}

// load reads stored marks into those of a run. A fact that an older build did not know is missing, which is its zero
// value.
func (s storedMarks) load(r *Run) {
	r.marks = map[urn.URN]*mark{}
	each(s.Done, func(u urn.URN, v *finished) { r.mark(u).Done = v })
	each(s.Replaced, func(u urn.URN, v bool) { r.mark(u).Replaced = v })
	each(s.Gone, func(u urn.URN, v bool) { r.mark(u).Deleted = v })
	each(s.Seeds, func(u urn.URN, v []byte) { r.mark(u).Seed = v })
	each(s.Since, func(u urn.URN, v int) { r.mark(u).Since = v })
	each(s.Made, func(u urn.URN, v int) { r.mark(u).Creates = v })
	each(s.Doubtful, func(u urn.URN, v bool) { r.mark(u).Undecided = v })
	each(s.Targeted, func(u urn.URN, v bool) { r.mark(u).Named = v })
	each(s.Aliased, func(u, v urn.URN) { r.mark(u).ClaimedBy = v })
	each(s.AliasOf, func(u, v urn.URN) { r.mark(u).Claims = v })
	each(s.Skipped, func(u urn.URN, v bool) { r.mark(u).LeftOut = v })
	each(s.Kept, func(u urn.URN, v bool) { r.mark(u).Kept = v })
	for _, u := range s.Wanted {
		r.mark(u).Wanted = true
	}
	for _, u := range s.Unsure {
		r.mark(u).Unsure = true
	}
}

// each visits the entries of a map in the order of their URNs. It is the only way in which the core goes through a map
// whose visits could have an effect: the order of a range statement is random, and a replay would differ.
func each[V any](of map[urn.URN]V, visit func(urn.URN, V)) {
	urns := make([]urn.URN, 0, len(of))
	//workflowcheck:ignore the keys are sorted before anything is done with them
	for u := range of {
		urns = append(urns, u)
	}
	slices.Sort(urns)
	for _, u := range urns {
		visit(u, of[u])
	}
}
