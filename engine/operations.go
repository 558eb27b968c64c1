package engine

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// operation is one command in flight, or one that waits for a slot.
//
// Invariant: an operation with a Step stands in exactly one of Queue, Slots and Waiting; one without is counted in
// Asked.
// Invariant: a mutating operation that was issued is pending in the snapshot until its outcome is recorded.
type operation struct {
	Op    int
	URN   urn.URN
	Step  *Step   `json:",omitempty"` // nil for plans, cascades and comparisons
	Pair  string  `json:",omitempty"` // of a comparison
	Entry *entry  `json:",omitempty"` // who waits for it
	For   purpose // what its completion means
	Key   Key     `json:",omitempty"` // the state it deletes or refreshes
	// Pending is the operation of an earlier update that it settles.
	Pending int `json:",omitempty"`
	// Check is the step's, while it reads what a person found.
	Check bool `json:",omitempty"`
	// Again is that of the Settle that was issued last.
	Again bool `json:",omitempty"`
	// Lost: an attempt was lost and not looked for, because the one that was begun again would find what it made.
	Lost bool `json:",omitempty"`
	// Reason is why the attempt that was lost last was.
	Reason string `json:",omitempty"`
	// Ended is how a create ended, while it is found out whether an attempt that was lost before made it after all.
	Ended *StepFinished `json:",omitempty"`
}

// purpose says what the completion of an operation is for.
type purpose string

const (
	forNothing  purpose = "" // its entry is gone; the answer is ignored
	forPlan     purpose = "plan"
	forCompare  purpose = "compare"
	forCascade  purpose = "cascade"
	forGoal     purpose = "goal" // create, update, read or import of an entry
	forDeletion purpose = "deletion"
	forRefresh  purpose = "refresh"
	forPending  purpose = "pending" // settles what an earlier update left
)

// newOp numbers an operation.
func (r *Run) newOp() int {
	r.NextOp++
	return r.NextOp
}

// newQuery numbers a question that goes out at once.
func (r *Run) newQuery(op *operation) int {
	op.Op = r.newOp()
	r.Ops[op.Op] = op
	r.Asked++
	return op.Op
}

// takeQuery takes a question back; nil when nobody waits for its answer any more.
func (r *Run) takeQuery(op int) *operation {
	o := r.Ops[op]
	if o == nil || o.Step != nil {
		return nil
	}
	delete(r.Ops, op)
	r.Asked--
	if o.For == forNothing {
		return nil
	}
	return o
}

// issueSteps returns free slots to the steps that wait, in order.
func (r *Run) issueSteps() {
	for len(r.Queue) > 0 && len(r.Slots) < r.goal.Parallel+r.goal.Ahead {
		op := r.Ops[r.Queue[0]]
		r.Queue = r.Queue[1:]
		if op == nil {
			continue
		}
		r.Slots = append(r.Slots, op.Op)
		r.begin(op)
		if op.For == forPending {
			r.settle(op)
			continue
		}
		r.ready.Start = append(r.ready.Start, *op.Step)
	}
}

// pendingKinds names what an unfinished step was doing, as stored pending operations do.
var pendingKinds = map[StepKind]string{
	StepCreate: "creating", StepCreateReplacement: "creating", StepUpdate: "updating", StepDelete: "deleting",
	StepDeleteReplaced: "deleting", StepRead: "reading", StepReadReplacement: "reading", StepImport: "importing",
	StepImportReplacement: "importing",
}

// begin tells that a step starts, and records it as pending.
func (r *Run) begin(op *operation) {
	step := op.Step
	if op.For == forPending {
		return
	}
	e := Emit{Kind: EmitPre, Op: op.Op, Step: step.Kind, URN: op.URN, Type: step.Type, Old: step.Old, New: step.New}
	if op.Entry != nil && op.Entry.Plan != nil {
		e.Diff = &op.Entry.Plan.Diff
	}
	r.emit(e)
	kind, mutates := pendingKinds[step.Kind]
	if !mutates || r.goal.DryRun {
		return
	}
	state := step.New
	if state == nil {
		state = step.Old
	}
	r.change(Delta{Kind: DeltaBegin, Op: op.Op, Pending: &PendingOperation{
		Op: op.Op, Kind: kind, State: *state, Seed: step.Seed,
	}})
}

// release frees the slot of an operation.
func (r *Run) release(op *operation) {
	delete(r.Ops, op.Op)
	r.Slots = slices.DeleteFunc(r.Slots, func(o int) bool { return o == op.Op })
}

// drop forgets an operation that was not issued; of one that was, only its meaning.
func (r *Run) drop(op int) {
	if o, ok := r.Ops[op]; ok && o.Step == nil {
		o.For, o.Entry = forNothing, nil
		return
	}
	delete(r.Ops, op)
}

// running reports that a step of the entry was issued, so that its end will be told, be it by a person.
func (r *Run) running(e *entry) bool {
	return e.Op != 0 && (slices.Contains(r.Slots, e.Op) || slices.Contains(r.Waiting, e.Op))
}

// stepOf returns the issued operation of a URN, a create that waits for a person included; nil when there is none.
func (r *Run) stepOf(u urn.URN) *operation {
	for _, list := range [][]int{r.Slots, r.Waiting} {
		for _, op := range list {
			if o := r.Ops[op]; o.URN == u && o.For != forRefresh {
				return o
			}
		}
	}
	return nil
}

// InFlight counts the commands that were issued and not answered; an undecidable create that waits for a person is
// not among them.
func (r *Run) InFlight() int { return r.Asked + len(r.Slots) }
