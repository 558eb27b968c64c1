package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// enqueue makes the entry's step. In a preview it is over at once: nothing is changed.
func (r *Run) enqueue(e *entry, check bool) {
	if !e.New.Custom {
		r.carryOut(e)
		return
	}
	step := &Step{
		Op: r.newOp(), Kind: e.Kind, URN: e.URN, Type: e.New.Type, Provider: r.providerOf(e.New.Provider), Seed: e.Seed,
		Check: check, Preview: r.goal.DryRun, Timeout: e.timeout(),
	}
	if e.Kind != StepCreate {
		step.Old = r.reference(e.Old)
	}
	if e.Kind == StepImport || e.Kind == StepImportReplacement {
		step.IgnoreChanges = e.Reg.IgnoreChanges
	}
	if IsProvider(e.New.Type) && slices.Contains([]StepKind{StepCreate, StepCreateReplacement}, e.Kind) {
		e.New.ID = ProviderID(e.Seed)
	}
	next := e.New
	step.New, step.Answer = &next, r.afterStep(e)
	e.Stage, e.Op = stageStepping, step.Op
	op := &operation{Op: step.Op, URN: e.URN, Step: step, Entry: e, For: forGoal}
	if r.goal.DryRun && slices.Contains(mutating, e.Kind) {
		r.emitStep(EmitPre, step.Op, e)
		id := e.Plan.PreviewID
		if e.Kind == StepUpdate || IsProvider(e.New.Type) {
			id = e.New.ID
		}
		r.goalFinished(op, StepFinished{Op: step.Op, Outcome: OutcomeDone, ID: id, Outputs: e.Plan.Preview})
		return
	}
	r.Ops[step.Op] = op
	r.Queue = append(r.Queue, step.Op)
}

func (e *entry) timeout() float64 {
	t := e.New.Timeouts
	switch {
	case t == nil:
		return 0
	case e.Kind == StepUpdate:
		return t.Update
	case e.Kind == StepRead || e.Kind == StepReadReplacement:
		return t.Read
	}
	return t.Create
}

// issueSteps gives free slots to the steps that wait, in order.
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
		r.out = append(r.out, *op.Step)
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

// stepFinished takes the outcome of a step, or of its settling.
func (r *Run) stepFinished(ev StepFinished) {
	op := r.Ops[ev.Op]
	if op == nil || op.Step == nil || !slices.Contains(r.Slots, ev.Op) {
		return
	}
	switch ev.Outcome {
	case OutcomeUnknown:
		op.Reason = ev.Error
		r.settle(op)
		return
	case OutcomeAbsent:
		switch {
		case op.Ended != nil:
			ev = *op.Ended
		case op.For != forPending && !r.Stopped:
			op.Lost = true
			r.out = append(r.out, *op.Step) // it had no effect, so it is made now
			return
		case op.Again:
			r.settle(op)
			return
		}
	case OutcomeUndecidable:
		if op.Ended != nil && op.Ended.Outcome == OutcomeFailed {
			r.diagnose("error", op.URN, "%s", op.Ended.why())
		}
		if !strings.Contains(ev.Error, op.Reason) {
			ev.Error += lastError(op.Reason)
		}
		r.undecidable(op, ev)
		return
	case OutcomeFailed:
		if op.Step.Adopt { // what the person named is not there, and the create is as uncertain as before
			next := *op.Step.New
			next.ID = ""
			op.Step.New, op.Step.Adopt, op.Step.Check = &next, false, op.Check
			r.undecidable(op, ev)
			return
		}
		if r.looksBack(op, ev) {
			return
		}
	case OutcomeCancelled:
		if r.looksBack(op, ev) {
			return
		}
	case OutcomeDone:
		if op.Ended != nil && op.Ended.Outcome == OutcomeFailed {
			ev.Outcome, ev.InitErrors = OutcomePartial, []string{op.Ended.why()}
		}
	default:
	}
	r.release(op)
	r.complete(op, ev)
}

// looksBack finds out, before a create ends without effect, whether an attempt that was lost before it had one: that
// was left to this attempt. It reports whether the end is put off.
func (r *Run) looksBack(op *operation, ev StepFinished) bool {
	if !op.Lost || op.Step.Kind != StepCreate && op.Step.Kind != StepCreateReplacement {
		return false
	}
	op.Ended, op.Lost = &ev, false
	r.settle(op)
	return true
}

// why says why a step failed.
func (ev StepFinished) why() string {
	reasons := []string{ev.Error}
	for _, f := range ev.Failures {
		reasons = append(reasons, strings.Trim(f.Property+": "+f.Reason, ": "))
	}
	return strings.TrimPrefix(strings.Join(reasons, "; "), "; ")
}

// release frees the slot of an operation.
func (r *Run) release(op *operation) {
	delete(r.Ops, op.Op)
	r.Slots = slices.DeleteFunc(r.Slots, func(o int) bool { return o == op.Op })
}

// complete sends a final outcome to whom it concerns. The operation is pending until what it made is stored.
func (r *Run) complete(op *operation, ev StepFinished) {
	if op.For != forPending && pendingKinds[op.Step.Kind] != "" && !r.goal.DryRun {
		defer func() { r.change(Delta{Kind: DeltaEnd, Op: op.Op}) }()
	}
	switch op.For {
	case forGoal:
		r.goalFinished(op, ev)
	case forDeletion:
		r.deletionFinished(op, ev)
	case forRefresh:
		r.refreshFinished(op, ev)
	case forPending:
		r.pendingSettled(op, ev)
	default:
	}
}

// goalFinished ends the step of an entry: the state is recorded before the program is answered.
func (r *Run) goalFinished(op *operation, ev StepFinished) {
	e := op.Entry
	switch {
	case len(ev.Failures) > 0:
		r.rejectInputs(e, ev.Failures)
		return
	case ev.Outcome == OutcomeCancelled || ev.Outcome == OutcomeAbsent:
		r.emitCut(op, "cut off by the cancel; the next update carries it out")
		r.finish(e, Reply{Result: ResultFail, Error: "the update was cancelled"})
		return
	case ev.Outcome == OutcomeFailed:
		r.emitFailed(op, ev.Error)
		r.reject(e, "%s", ev.Error)
		return
	}
	r.take(e, ev)
	r.record(e, op.Op)
	if e.Kind == StepImport || e.Kind == StepImportReplacement {
		r.imported(e, op.Op)
		return
	}
	if ev.Outcome == OutcomePartial {
		r.partial(e, op, ev)
		return
	}
	e.Answered = ev.Answered && op.Step.Answer.to(e)
	r.succeed(e, op.Op)
}

// take puts what a step found, and when, into the entry's new state.
func (r *Run) take(e *entry, ev StepFinished) {
	e.New.learn(ev)
	switch {
	case ev.At == "":
	case e.Kind == StepUpdate:
		e.New.Modified = ev.At
	default:
		e.New.Created, e.New.Modified = ev.At, ev.At
	}
}

// learn puts what a step found into a state.
func (s *State) learn(ev StepFinished) {
	if ev.ID != "" {
		s.ID = ev.ID
	}
	if ev.Inputs != nil {
		s.Inputs = *ev.Inputs
	}
	s.Outputs, s.InitErrors, s.RefreshBeforeUpdate = ev.Outputs, ev.InitErrors, ev.RefreshBeforeUpdate
}

// record stores the entry's new state under the operation that made it, and takes the old one's place or condemns it.
func (r *Run) record(e *entry, op int) {
	e.New.Key = opKey(op)
	next := e.New
	if e.Kind == StepCreate || e.Kind == StepCreateReplacement {
		r.Made[e.URN]++
		delete(r.Seeds, e.URN)
	}
	put := Delta{Kind: DeltaPut, Op: op, State: &next}
	for _, from := range e.New.Aliases {
		if r.snap.current(from) != e.URN {
			r.change(Delta{Kind: DeltaAlias, From: from, To: e.URN})
		}
	}
	old := r.snap.Get(e.Old)
	from := len(r.snap.news)
	if old != nil {
		if i := r.snap.place[old.Key]; i < 0 {
			from = -1 - i
		}
		r.Replaced[e.URN] = r.Replaced[e.URN] || e.replaces()
		if e.replaces() && !old.PendingReplacement {
			waits := *old
			waits.Delete = true
			r.change(Delta{Kind: DeltaSet, State: &waits})
		} else {
			put.Removes = []Key{old.Key}
		}
	}
	end := len(r.snap.news)
	r.change(put)
	r.moveDependents(e.URN, from, end)
}

// moveDependents moves the states of a stretch of the new list that depend on a URN, however far, behind what now
// stands for it: an earlier start of the program, or targets, had put them there. A copy that waits for its deletion
// moves only when nothing that it refers to stands before it any more, and takes nobody along: nobody refers to it.
func (r *Run) moveDependents(u urn.URN, from, end int) {
	moved := map[urn.URN]bool{u: true}
	depends := func(ref urn.URN) bool { return moved[r.current(ref)] }
	for i := from; i < end; i++ {
		at := &r.snap.news[i]
		if at.Gone {
			continue
		}
		state := at.State
		switch {
		case state.Delete && !r.snap.stranded(state):
		case state.Delete, slices.ContainsFunc(state.References(), depends):
			moved[r.current(state.URN)] = moved[r.current(state.URN)] || !state.Delete
			r.change(Delta{Kind: DeltaPut, State: &state, Removes: []Key{state.Key}})
		}
	}
}

// replaces reports that the entry's step puts something else in the place of the old resource, which stays until the
// delete phase if it was not deleted before.
func (e *entry) replaces() bool {
	return e.Kind == StepCreateReplacement || e.Kind == StepReadReplacement || e.Kind == StepImportReplacement
}

// succeed tells of a step's success and answers the program.
func (r *Run) succeed(e *entry, op int) {
	r.emitStep(EmitOutputs, op, e)
	if e.Kind == StepCreateReplacement || e.Kind == StepReadReplacement {
		r.emitReplace(e, op)
	} else {
		r.countRead(e)
	}
	r.done(e, e.stables())
}

// stables are the properties that keep their values whatever the entry's step does.
func (e *entry) stables() []string {
	if e.Plan == nil {
		return nil
	}
	return e.Plan.Diff.StableKeys
}

// partial records a resource that exists but did not initialise: the update fails and the next one repairs it.
func (r *Run) partial(e *entry, op *operation, ev StepFinished) {
	for _, reason := range ev.InitErrors {
		r.diagnose("error", e.URN, "%s", reason)
	}
	r.emitFailed(op, "the resource exists, but its initialisation failed")
	r.count(e.Kind, e.URN)
	r.failEntry(e, fmt.Sprintf("%s exists, but its initialisation failed", e.URN))
}

// stepOf gives the issued operation of a URN, a create that waits for a person included; nil when there is none.
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
