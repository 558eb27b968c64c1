package engine

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// operation is one command in flight, or one that waits for a slot.
//
// Invariant: an operation with a Step stands in exactly one of Queue, Slots, Paused and Waiting; one without is counted
// in Asked.
// Invariant: a mutating operation that was issued is pending in the snapshot until its outcome is recorded. While hooks
// run for it, its call was not made yet, or its outcome is recorded.
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
	// Inquiry is what the next outcome is about.
	Inquiry inquiry `json:",omitempty"`
	// Lost: an attempt was lost and not looked for, because the one that was begun again would find what it made.
	Lost bool `json:",omitempty"`
	// Answered: a person's answer, which came with the goal, was given.
	Answered bool `json:",omitempty"`
	// Reason is why the attempt that was lost last was.
	Reason string `json:",omitempty"`
	// Hooks says which hook runs for the step; nil while none does.
	Hooks *hooking `json:",omitempty"`
	// Errors are those of the attempts about which error hooks were asked, the latest first.
	Errors []string `json:",omitempty"`
	// Promised: a plan was sent with the reply that its entry gets if nothing changes.
	Promised bool `json:",omitempty"`
	// Silent: nothing is called but the hooks.
	Silent bool `json:",omitempty"`
	// Reply waits for the after hooks of a component.
	Reply *Reply `json:",omitempty"`
	// Ended is how the step ended, while the inquiry is aboutEarlier or aboutError. Doubted is set with the latter, for
	// builds of this revision that know no inquiry.
	Ended   *StepFinished `json:",omitempty"`
	Doubted bool          `json:",omitempty"`
	// Awaits: it looks again at a resource that was not ready.
	Awaits *awaiting `json:",omitempty"`
}

// inquiry is what the next outcome of an operation is about. Its JSON value stands in suspended runs.
type inquiry string

const (
	aboutStep    inquiry = ""        // the step itself, which waits for a slot, or runs
	aboutLost    inquiry = "lost"    // an attempt whose answer was lost; if it had no effect, the step is issued again
	aboutLast    inquiry = "last"    // the same, but the step is not issued again, so the answer must be definite
	aboutEarlier inquiry = "earlier" // an attempt that was lost before the one that has ended
	aboutError   inquiry = "error"   // the attempt that has ended, by an error that leaves open whether it had its effect
)

// inquiries are what may be inquired about after each inquiry; inquire permits nothing else. What is lost while it is
// found out is inquired about once more. An error hook, or a person who has looked, has the step issued again.
var inquiries = map[inquiry][]inquiry{
	aboutStep:    {aboutStep, aboutLost, aboutLast, aboutEarlier, aboutError},
	aboutLost:    {aboutStep, aboutLost, aboutLast, aboutEarlier, aboutError},
	aboutLast:    {aboutStep, aboutLast, aboutEarlier, aboutError},
	aboutEarlier: {aboutStep, aboutEarlier},
	aboutError:   {aboutStep, aboutError},
}

// inquire sets what the next outcome of an operation is about.
func (op *operation) inquire(about inquiry) {
	if !slices.Contains(inquiries[op.Inquiry], about) {
		panic(fmt.Sprintf("operation %d of %s cannot inquire about %q after %q", op.Op, op.URN, about, op.Inquiry))
	}
	op.Inquiry, op.Doubted = about, about == aboutError
	if about != aboutEarlier && about != aboutError {
		op.Ended = nil
	}
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
	forOutputs  purpose = "outputs" // only runs the after hooks of a component
	forStack    purpose = "stack"   // the policy packs analyse the stack
)

// newOp returns the number of the next operation. Numbers are never reused: keys, pending operations and results are
// found by them.
func (r *Run) newOp() int {
	r.NextOp++
	return r.NextOp
}

// newQuery registers a plan, a cascade or a comparison as in flight and returns its number. Queries need no slot: they
// change nothing.
func (r *Run) newQuery(op *operation) int {
	op.Op = r.newOp()
	r.Ops[op.Op] = op
	r.Asked++
	return op.Op
}

// takeQuery removes a query whose result is there. It returns nil when the result concerns no one any more: it came
// twice, or its entry was dropped when the update stopped, a new epoch began, or a cascade discarded the plan. A
// handler of a result calls it first, so it acts at most once on each query.
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

// issueSteps gives free slots to the steps that wait, in order. It issues Goal.Ahead more than may run at a time: those
// wait where they are carried out, so that a slot is not empty while the core hears that it is free.
//
// A step that settles an operation of an earlier update takes a slot as well, but is sent as a Settle.
func (r *Run) issueSteps() {
	for len(r.Queue) > 0 {
		op := r.Ops[r.Queue[0]]
		if len(r.Slots) >= r.slots(op) {
			return
		}
		r.Queue = r.Queue[1:]
		if op == nil {
			continue
		}
		r.Slots = append(r.Slots, op.Op)
		if op.For == forPending {
			r.settleLost(op)
			continue
		}
		if op.Awaits != nil {
			r.send(op)
			continue
		}
		r.show(op)
		if !r.runHooks(op, hookPoints[op.Step.Kind].before) {
			r.send(op)
		}
	}
}

// slots returns the number of slots that a step may find taken for it to be issued; op is nil for a step that was
// dropped. A step with hooks is not issued ahead: its hooks would run beside more steps than may run at a time.
func (r *Run) slots(op *operation) int {
	n := r.goal.Parallel + r.goal.Ahead
	if op != nil && op.Step.hooked() {
		return r.goal.Parallel
	}
	if op != nil && op.For == forRefresh {
		n += r.goal.ReadAhead
	}
	return n
}

// send issues the step of an operation that has a slot. A silent one has no call, and ends.
func (r *Run) send(op *operation) {
	if op.Silent {
		r.release(op)
		r.complete(op, op.silent())
		return
	}
	r.begin(op)
	r.ready.Start = append(r.ready.Start, *op.Step)
}

// silent returns the outcome of an operation that calls nothing: of a step in a preview, the outputs of its plan.
func (op *operation) silent() StepFinished {
	ev := StepFinished{Op: op.Op, Outcome: OutcomeDone}
	switch e := op.Entry; {
	case e == nil:
	case e.New.Custom:
		ev.ID, ev.Outputs, ev.Views = e.previewID(), e.Plan.Preview, e.Plan.Views
	default:
		ev.Outputs = e.New.Outputs
	}
	return ev
}

// pendingKinds names what an unfinished step was doing, as stored pending operations do.
var pendingKinds = map[StepKind]string{
	StepCreate: "creating", StepCreateReplacement: "creating", StepUpdate: "updating", StepDelete: "deleting",
	StepDeleteReplaced: "deleting", StepRead: "reading", StepReadReplacement: "reading", StepImport: "importing",
	StepImportReplacement: "importing",
}

// show shows that a step starts.
func (r *Run) show(op *operation) {
	step := op.Step
	e := Emit{Kind: EmitPre, Op: op.Op, Step: step.Kind, URN: op.URN, Type: step.Type, Old: step.Old, New: step.New}
	if op.Entry != nil && op.Entry.Plan != nil {
		e.Diff = &op.Entry.Plan.Diff
	}
	r.emit(e)
}

// begin records a step as pending in the snapshot. The command follows in the same Ready: a step that the checkpoint
// does not know to be pending is never sent. A step that settles an operation of an earlier update is pending already,
// under the number of that operation. A refresh is never pending; reads and imports are, as in Pulumi's states.
func (r *Run) begin(op *operation) {
	step := op.Step
	kind, mutates := pendingKinds[step.Kind]
	if !mutates || r.goal.DryRun {
		return
	}
	state := step.New
	if state == nil {
		state = step.Old
	}
	r.change(Delta{Kind: DeltaBegin, Op: op.Op, Pending: &PendingOperation{
		Op: op.Op, Kind: kind, State: *state, Seed: step.Seed, Since: step.Since,
	}})
}

// release removes an operation that has ended and frees its slot. It comes before complete, which may decide about the
// same entry again.
func (r *Run) release(op *operation) {
	delete(r.Ops, op.Op)
	r.Slots = slices.DeleteFunc(r.Slots, func(o int) bool { return o == op.Op })
}

// drop forgets an operation that its entry gives up. A query is in flight and keeps its number until its result is
// there, which is then ignored. A step must not have been issued.
func (r *Run) drop(op int) {
	if o, ok := r.Ops[op]; ok && o.Step == nil {
		o.For, o.Entry = forNothing, nil
		return
	}
	delete(r.Ops, op)
}

// running reports that a step of the entry was issued, so that its outcome will come: from the driver, or from a
// person.
func (r *Run) running(e *entry) bool {
	return e.Op != 0 && (slices.Contains(r.Slots, e.Op) || slices.Contains(r.Waiting, e.Op))
}

// takesTurns reports that an entry waits for one that was registered before it, because steps run one at a time. As in
// Pulumi, what has no step of its own has its turn, too: otherwise its place in the snapshot would depend on how fast
// an answer that was sent ahead is followed by the result of the step or of the plan. A step whose hooks run is not
// waited for: a hook may need what is registered now.
func (r *Run) takesTurns(e *entry) bool {
	if r.goal.Parallel != 1 {
		return false
	}
	before := func(other *entry) bool { return other.Epoch == e.Epoch && other.Order < e.Order }
	return slices.ContainsFunc(r.Slots, func(op int) bool {
		o := r.Ops[op]
		return o.For == forGoal && o.Hooks == nil && before(o.Entry)
	}) || before(r.Entries[r.firstOpen()]) && r.promised(r.Entries[r.firstOpen()]) // no other can be promised
}

// stepOf returns the issued step of a URN, including a create that waits for a person; nil when there is none. No
// second step of the URN may begin before it has ended. Refreshes do not count: they end before anything is decided.
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

// InFlight counts the commands whose completion the driver owes. An undecidable create that waits for a person is not
// among them, so a Run can be suspended while it waits.
func (r *Run) InFlight() int { return r.Asked + len(r.Slots) + len(r.Paused) }
