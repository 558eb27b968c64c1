package engine

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// stage is where a registration stands. Its JSON value stands in suspended runs.
type stage string

const (
	stageHeld      stage = "held"      // waits for what it refers to, or for the running step of its URN
	stageComparing stage = "comparing" // its provider is being compared with the old one
	stagePlanning  stage = "planning"  // Check and Diff are in flight
	stagePlanned   stage = "planned"   // the plan is there and waits for its turn
	stageCascading stage = "cascading" // the cascade of its replacement is being computed
	stageSweeping  stage = "sweeping"  // copies that depend on its cascade are being deleted before the cascade
	stageClearing  stage = "clearing"  // the old resource and its cascade are being deleted before the replacement
	stageStepping  stage = "stepping"  // its step waits for a slot, is in flight, or waits for a person
	stageDone      stage = "done"      // the program has its reply
)

// transitions are the stages to which an entry may move from each stage; become permits no other move.
//
// The usual ways are held → planning → planned → stepping → done; held → stepping → done for a create; and, for a
// resource that is deleted before it is replaced, planned → cascading → (sweeping →) clearing → stepping → done. An
// entry goes back to held when its decision has to be made again: its old state is deleted in another entry's cascade,
// the comparison of its provider is there, or its import was read. An entry whose old resource is being deleted for it
// never goes back.
var transitions = map[stage][]stage{
	"":             {stageHeld, stageDone}, // a duplicate is refused at once
	stageHeld:      {stageComparing, stagePlanning, stagePlanned, stageStepping, stageHeld, stageDone},
	stageComparing: {stageHeld, stageDone},
	stagePlanning:  {stagePlanned, stageHeld, stageDone}, // held again: its old state goes in a cascade
	stagePlanned:   {stageCascading, stageSweeping, stageClearing, stageStepping, stageHeld, stageDone},
	stageCascading: {stageSweeping, stageClearing, stageDone},
	stageSweeping:  {stageSweeping, stageClearing, stageDone}, // again: another copy stands in the way now
	stageClearing:  {stageStepping, stageDone},
	// back to held: an import is compared with its goal; again: it is not ready, and looked at once more
	stageStepping: {stageHeld, stageStepping, stageDone},
	stageDone:     {},
}

// entry is a registration or a read of this epoch on its way to a reply.
//
// Invariant: in the stages planning, cascading and stepping, Op is the operation in flight (or queued) that has this
// entry; in every other stage it is 0. In comparing, the operation is the one in Run.comparing with the entry's pair.
// Invariant: a runnable entry is listed, and an entry is listed exactly if it is in Run.runnable.
// Invariant: blockedOn is nil, or an entry of this epoch that was registered earlier or, of a binding, its resource
// that is reconciled again.
// Invariant: a done entry has a Result.
//
// Old and what follows from it (Plan, Forced, Changed) are set by start and decide. What is not valid any more is
// cleared when the entry goes back to held, because its decision is then made from the beginning. New is prepared from
// the goal, gets its inputs from the plan, and the rest from the step. Kind is set when the decision is made. Result is
// set by finish alone.
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
	At      string `json:",omitempty"` // when a component was registered
	Changed bool   `json:",omitempty"` // the old provider cannot go on
	// Forced says why the core itself replaces the resource: the keys to show. It is set by force.
	Forced    []string    `json:",omitempty"`
	Members   []Dependent `json:",omitempty"` // of its cascade, while it sweeps
	Plan      *Planned    `json:",omitempty"`
	Imported  bool        `json:",omitempty"` // what follows is the ordinary plan over what was imported
	Found     *Found      `json:",omitempty"` // what exists in its place, and is taken into the stack
	blockedOn *entry      // must move before this entry can
	listed    bool        // is in Run.runnable
	pair      string      // the comparison that it waits for in stageComparing
	Kind      StepKind    `json:",omitempty"` // of the step that was decided
	Result    ResultKind
	// Answered: the program has its reply already.
	Answered bool `json:",omitempty"`
	// ViewError is the error of a view, for which the entry fails although its own step is done.
	ViewError string `json:",omitempty"`
	// Ahead is what a replica has found out about it.
	Ahead *Ahead `json:",omitempty"`
	// Awaited: its step is done, and what it made is not ready.
	Awaited *Awaited `json:",omitempty"`
	// Again: the program did not register it; see bindings.go.
	Again *again `json:",omitempty"`
}

// become moves an entry to a stage; op is the operation whose completion it then waits for, 0 for none. It panics on a
// move that transitions does not permit: such a move is a fault of this package, and going on could repeat a step.
func (r *Run) become(e *entry, to stage, op int) {
	if !slices.Contains(transitions[e.Stage], to) {
		panic(fmt.Sprintf("%s cannot move from stage %q to %q", e.URN, e.Stage, to))
	}
	e.Stage, e.Op, e.blockedOn = to, op, nil
	r.list(e)
}

// list makes advanceEntries visit an entry that is runnable. It is the only way into Run.runnable.
//
// The entry leaves the list when advanceEntries visits it and it is no longer runnable. Until then it may be listed
// without being runnable, which does no harm.
func (r *Run) list(e *entry) {
	if e.runnable() && !e.listed {
		e.listed = true
		r.runnable = append(r.runnable, e)
	}
}

// advanceEntries moves every runnable entry that is not blocked, in order of registration; it reports whether one
// moved. The order is a part of the contract: what was registered earlier is decided first, whatever the order of
// answers.
//
// A visit may list further entries. These are visited in the next pass: this one goes through the entries that were
// listed when it began. The two slices take turns, so that a pass allocates nothing.
func (r *Run) advanceEntries() bool {
	moved := false
	looking, order := r.runnable, func(a, b *entry) int { return a.Order - b.Order }
	r.runnable = r.spare[:0]
	if !slices.IsSortedFunc(looking, order) {
		slices.SortFunc(looking, order)
	}
	for _, e := range looking {
		if !e.blocked() {
			moved = r.advanceEntry(e) || moved
		}
		if e.listed = e.runnable(); e.listed {
			r.runnable = append(r.runnable, e)
		}
	}
	r.spare = looking
	return moved
}

// advanceEntry advances a runnable entry by one stage; it reports whether the entry left its stage.
func (r *Run) advanceEntry(e *entry) bool {
	e.blockedOn = nil
	switch e.Stage {
	case stageHeld:
		moved := r.start(e)
		// Its plan came with it. It is recorded before what the program registered after it got the reply.
		if e.Stage == stagePlanned && e.Ahead != nil {
			r.commit(e)
		}
		return moved
	case stagePlanned:
		return r.commit(e)
	case stageSweeping:
		return r.swept(e)
	case stageClearing:
		return r.deletedFirst(e)
	default:
		return false
	}
}

// runnable reports that the entry may advance without an external event.
func (e *entry) runnable() bool {
	return e.Stage == stageHeld || e.Stage == stagePlanned || e.Stage == stageSweeping || e.Stage == stageClearing
}

// blocked reports that the entry on which this one waits has not got far enough: its decision for a plan, its end
// otherwise. It saves a visit; advanceEntry finds the same.
func (e *entry) blocked() bool {
	switch {
	case e.blockedOn == nil:
		return false
	case e.Stage == stagePlanned:
		return !e.blockedOn.committed()
	}
	return e.blockedOn.Stage != stageDone
}

// committed reports that the entry's decision is final: its step has begun, or its old resource is being deleted.
//
// waitsFor waits for this, and not for the end of the step. In most stages before it an entry can still go back to
// held.
func (e *entry) committed() bool {
	return e.Stage == stageDone || e.Stage == stageStepping || e.Stage == stageClearing
}

// firstOpen returns the index of the first entry that has not ended. It remembers how far it got, so that a long run
// does not visit what has ended again and again.
func (r *Run) firstOpen() int {
	for r.openFrom < len(r.Entries) && r.Entries[r.openFrom].Stage == stageDone {
		r.openFrom++
	}
	return r.openFrom
}

// decided reports that a stored resource was registered in this epoch and that its decision is final.
func (r *Run) decided(u urn.URN) bool {
	e := r.byURN[r.current(u)]
	return e != nil && e.committed()
}
