package engine

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// stage is where a registration stands.
type stage string

const (
	stageHeld      stage = "held"      // waits for what it names, or for its URN's running step
	stageComparing stage = "comparing" // its provider is being compared with the old one
	stagePlanning  stage = "planning"
	stagePlanned   stage = "planned"   // the plan is there and waits for its turn
	stageCascading stage = "cascading" // the cascade of its replacement is being found
	// copies that wait for deletion and depend on what is to be deleted first go ahead of it
	stageSweeping stage = "sweeping"
	stageClearing stage = "clearing" // the old resource is being deleted first
	stageStepping stage = "stepping"
	stageDone     stage = "done"
)

// entry is a registration or a read of this epoch on its way to a reply.
type entry struct {
	Epoch int
	Seq   int
	Order int // of registration in this epoch
	URN   urn.URN
	Reg   Registration
	Read  bool // a read of a resource that this stack does not own
	Stage stage
	Op    int `json:",omitempty"`

	Old     Key    `json:",omitempty"` // state it starts from; "" when there is none
	New     State  // what it becomes
	Seed    []byte `json:",omitempty"`
	Changed bool   `json:",omitempty"` // the old provider cannot go on
	// Forced says why the core replaces on its own account: the keys to show.
	Forced   []string    `json:",omitempty"`
	Members  []Dependent `json:",omitempty"` // of its cascade, while it sweeps
	Plan     *Planned    `json:",omitempty"`
	Imported bool        `json:",omitempty"` // what follows is the ordinary plan over what was imported
	// waits is an entry that must get on before this one is worth another look; listed, that it is in Run.restless.
	waits  *entry
	listed bool
	pair   string   // the comparison that it waits for in stageComparing
	Kind   StepKind `json:",omitempty"` // of the step it came to
	Result ResultKind
	// Answered: the program has its reply already.
	Answered bool `json:",omitempty"`
}

// enter puts an entry in a stage in which it is looked at again.
func (r *Run) enter(e *entry, s stage) {
	e.Stage, e.waits = s, nil
	if !e.listed {
		e.listed = true
		r.restless = append(r.restless, e)
	}
}

// advanceEntries moves every entry that can move, in order of registration; it reports whether one did.
func (r *Run) advanceEntries() bool {
	moved := false
	looking, order := r.restless, func(a, b *entry) int { return a.Order - b.Order }
	r.restless = r.spare[:0]
	if !slices.IsSortedFunc(looking, order) {
		slices.SortFunc(looking, order)
	}
	for _, e := range looking {
		if !e.blocked() {
			moved = r.advanceEntry(e) || moved
		}
		if e.listed = e.restless(); e.listed {
			r.restless = append(r.restless, e)
		}
	}
	r.spare = looking
	return moved
}

// advanceEntry moves an entry that is not waiting for an answer.
func (r *Run) advanceEntry(e *entry) bool {
	e.waits = nil
	switch e.Stage {
	case stageHeld:
		return r.start(e)
	case stagePlanned:
		return r.commit(e)
	case stageSweeping:
		return r.swept(e)
	case stageClearing:
		return r.cleared(e)
	default:
		return false
	}
}

// restless reports that an entry waits for something of the run's own, and not for an answer.
func (e *entry) restless() bool {
	return e.Stage == stageHeld || e.Stage == stagePlanned || e.Stage == stageSweeping || e.Stage == stageClearing
}

// blocked reports that what the entry was found to wait for has not come about.
func (e *entry) blocked() bool {
	switch {
	case e.waits == nil:
		return false
	case e.Stage == stagePlanned:
		return !e.waits.committed()
	}
	return e.waits.Stage != stageDone
}

// committed reports that the entry's decision stands.
func (e *entry) committed() bool {
	return e.Stage == stageDone || e.Stage == stageStepping || e.Stage == stageClearing
}

// firstUndone skips the entries that have ended, so that a long run does not visit them again and again.
func (r *Run) firstUndone() int {
	for r.undone < len(r.Entries) && r.Entries[r.undone].Stage == stageDone {
		r.undone++
	}
	return r.undone
}

// settled reports that a stored resource was registered in this epoch and its decision stands.
func (r *Run) settled(u urn.URN) bool {
	e := r.byURN[r.current(u)]
	return e != nil && e.committed()
}
