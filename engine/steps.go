package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/engine/snapshot"
)

// A step that calls a provider passes through these places:
//
//  enqueue       the entry moves to stepping, the operation waits in Queue
//  issueSteps    it takes a slot; its pending operation and its command go out in one Ready
//  stepFinished  the outcome is final, or the step is settled or issued again in its slot
//  complete      the effect is recorded, the program is answered, the pending operation ends
//
// A step keeps its operation number and its seed through all attempts. The number is the key of the state that the step
// makes; the seed gives the name under which a repeated create finds what an earlier one has made.

// enqueue queues the step that the entry's Kind says, and decides with it which reply is sent ahead. A component has no
// step, and in a preview a step that would change something ends at once with the outputs of the plan. The caller sets
// e.Kind and all of e.New but what the step itself finds; check means that the inputs have not been checked by a plan.
func (r *Run) enqueue(e *entry, check bool) {
	if r.Stopped {
		r.refuse(e)
		return
	}
	if r.departs(e) {
		return
	}
	at := hookPoints[e.Kind]
	if !e.New.Custom && len(e.New.Hooks[at.before]) == 0 {
		r.carryOut(e)
		return
	}
	silent := !e.New.Custom || r.goal.DryRun && slices.Contains(mutating, e.Kind)
	if !silent && r.contradicts(e) {
		return
	}
	step := &Step{
		Op: r.newOp(), Kind: e.Kind, URN: e.URN, Type: e.New.Type, Provider: r.providerFor(&e.New), Seed: e.Seed,
		Check: check, Preview: r.goal.DryRun, Timeout: e.timeout(), Since: r.since(e.URN), Again: e.Again != nil,
		Await: !r.goal.DryRun && slices.Contains(mutating, e.Kind),
	}
	if e.Kind != StepCreate {
		step.Old = r.reference(e.Old)
	} else if check {
		step.Look = r.look(e, nil)
	}
	if e.Kind == StepImport && e.Found != nil {
		step.Found, step.Seed = true, SeedOf(r.goal.Identity, e.URN, e.Found.Generation)
	}
	if e.Kind == StepUpdate {
		step.Views = r.viewStates(e.Old)
	}
	if e.Kind == StepImport || e.Kind == StepImportReplacement {
		step.IgnoreChanges = e.Reg.IgnoreChanges
	}
	// The core assigns the ids of providers, so a step that is repeated makes no other id.
	if snapshot.IsProvider(e.New.Type) && slices.Contains([]StepKind{StepCreate, StepCreateReplacement}, e.Kind) {
		e.New.ID = ProviderID(e.Seed)
	}
	// The step has a copy, so that a repetition sends what the first attempt sent.
	next := e.New
	step.New, step.Answer = &next, r.afterStep(e)
	r.become(e, stageStepping, step.Op)
	op := &operation{Op: step.Op, URN: e.URN, Step: step, Entry: e, For: forGoal, Silent: silent}
	if op.Silent && !step.hooked() {
		r.emitStep(EmitPre, step.Op, e)
		r.goalFinished(op, op.silent())
		return
	}
	r.Ops[step.Op] = op
	r.Queue = append(r.Queue, step.Op)
}

// previewID returns the id that a step of a preview makes. No create of a preview is without a plan: plan makes a
// direct step only outside previews.
func (e *entry) previewID() string {
	if e.Kind == StepUpdate || snapshot.IsProvider(e.New.Type) {
		return e.New.ID
	}
	return e.Plan.PreviewID
}

// timeout returns the customTimeouts of the entry's step. An import counts as a create.
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

// stepFinished handles the outcome of a step, or what settling found out about one.
//
//	unknown      the step is settled
//	absent       the lost attempt had no effect: the step is issued again, unless the update is ending
//	undecidable  it is left to a person or to the next update
//	failed,      a create first settles an attempt that was lost before it and was left to it
//	cancelled    (a failed create or delete also itself, if its error leaves open whether it had its effect)
//	done,        recorded
//	partial
//
// The operation keeps its slot until its outcome is final: what may be running counts as running.
func (r *Run) stepFinished(ev StepFinished) {
	op := r.Ops[ev.Op]
	if op == nil || op.Step == nil || op.Hooks != nil || !slices.Contains(r.Slots, ev.Op) {
		return
	}
	if ev.Found != nil {
		r.release(op)
		r.found(op.Entry, *ev.Found, op)
		return
	}
	final, ok := r.finalOutcome(op, ev)
	if !ok || op.Awaits == nil && r.askErrorHooks(op, final) {
		return
	}
	r.release(op)
	r.complete(op, final)
}

// finalOutcome returns the outcome that an operation has after a step of it. It is false if the operation has none yet,
// because it is settled, begun again, or left to a person or to the next update.
func (r *Run) finalOutcome(op *operation, ev StepFinished) (StepFinished, bool) {
	switch {
	case ev.Outcome == OutcomeUnknown:
		op.Reason = ev.Error
		if op.Awaits != nil {
			return r.lookedInVain(op, ev)
		}
		r.settleLost(op)
		return ev, false
	case ev.Outcome == OutcomeUndecidable:
		r.stillUndecidable(op, ev)
		return ev, false
	case ev.Outcome == OutcomeFailed && op.Step.Adopt:
		r.notAdopted(op, ev)
		return ev, false
	case op.Inquiry == aboutEarlier:
		return op.earlier(ev), true
	case op.Inquiry == aboutError:
		return r.doubted(op, ev), true
	}
	return r.attempted(op, ev)
}

// lookedInVain is finalOutcome if the answer about a resource that was not ready is lost.
func (r *Run) lookedInVain(op *operation, ev StepFinished) (StepFinished, bool) {
	if r.Stopped { // the state says that it is not ready
		ev.Outcome = OutcomeCancelled
		return ev, true
	}
	r.ready.Start = append(r.ready.Start, *op.Step) // it changes nothing to look once more
	return ev, false
}

// attempted is finalOutcome after the last attempt, whether its answer came or was found out.
func (r *Run) attempted(op *operation, ev StepFinished) (StepFinished, bool) {
	switch ev.Outcome {
	case OutcomeAbsent:
		switch {
		case op.For != forPending && !r.Stopped: // it had no effect, so it is made now
			op.inquire(aboutStep)
			op.Lost = true
			r.ready.Start = append(r.ready.Start, *op.Step)
			return ev, false
		// The update is ending, so the step is not made again. The answer, now or before, may have relied on that.
		case op.Inquiry == aboutLost || op.Lost && op.Inquiry == aboutStep:
			r.settle(op, aboutLast)
			return ev, false
		}
	case OutcomeFailed:
		return ev, !r.lookAfter(op, ev) && !r.reconcileEarlier(op, ev)
	case OutcomeCancelled:
		return ev, !r.reconcileEarlier(op, ev)
	default:
	}
	return ev, true
}

// earlier returns how a create ended of which an earlier attempt was settled.
func (op *operation) earlier(found StepFinished) StepFinished {
	switch {
	case found.Outcome == OutcomeAbsent: // that made nothing, so the create ended as its last attempt did
		return *op.Ended
	// That made the resource, and the last one failed: it exists, and has not become what was asked for.
	case found.Outcome == OutcomeDone && op.Ended.Outcome == OutcomeFailed:
		found.Outcome, found.InitErrors = OutcomePartial, []string{op.Ended.why()}
	}
	return found
}

// stillUndecidable reports why a step cannot be settled, and leaves it to a person or to the next update.
func (r *Run) stillUndecidable(op *operation, ev StepFinished) {
	if op.Inquiry == aboutEarlier && op.Ended.Outcome == OutcomeFailed {
		r.diagnose("error", op.URN, "%s", op.Ended.why())
	}
	if !strings.Contains(ev.Error, op.Reason) {
		ev.Error += lastError(op.Reason)
	}
	r.undecidable(op, ev)
}

// notAdopted asks again about a create for which a person named a resource that is not there: it is as uncertain as
// before.
func (r *Run) notAdopted(op *operation, ev StepFinished) {
	next := *op.Step.New
	next.ID = ""
	op.Step.New, op.Step.Adopt, op.Step.Check = &next, false, op.Check
	r.undecidable(op, ev)
}

// reconcileEarlier settles an earlier lost attempt before this create is reported as failed; true means that the result
// waits for that. While the create was to be made again, settling could leave the lost attempt to be found by it. Now
// that it has failed, a resource of the lost attempt would be recorded nowhere.
func (r *Run) reconcileEarlier(op *operation, ev StepFinished) bool {
	if !op.Lost || op.Step.Kind != StepCreate && op.Step.Kind != StepCreateReplacement {
		return false
	}
	op.Ended, op.Lost = &ev, false
	r.settle(op, aboutEarlier)
	return true
}

// why joins the reasons for which a step failed.
func (ev StepFinished) why() string {
	reasons := []string{ev.Error}
	for _, f := range ev.Failures {
		reasons = append(reasons, strings.Trim(f.Property+": "+f.Reason, ": "))
	}
	return strings.TrimPrefix(strings.Join(reasons, "; "), "; ")
}

// complete hands a final outcome to the purpose of its operation. The pending operation ends after what it made is
// stored, in this order: between the two the snapshot holds both, never neither.
func (r *Run) complete(op *operation, ev StepFinished) {
	if r.snap.IsPending(op.Op) && op.For != forPending {
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

// goalFinished ends the step of an entry: the state is recorded before the program is answered, so that what the
// program registers next finds it.
//
// An outcome without effect changes no state: the old one stays live, and the next update decides again.
func (r *Run) goalFinished(op *operation, ev StepFinished) {
	e := op.Entry
	switch {
	case op.Awaits != nil:
		r.looked(op, ev)
		return
	case e.Kind == StepRefresh:
		r.entryRefreshed(op, ev)
		return
	case len(ev.Failures) > 0:
		r.rejectInputs(e, ev.Failures)
		return
	case ev.Outcome == OutcomeCancelled || ev.Outcome == OutcomeAbsent:
		if !r.Cancelled { // its before hooks ran while the update failed
			r.emitCancelled(op, "the update failed before the step began; the next update carries it out")
			r.finish(e, Reply{Result: ResultFail, Error: updateEnds})
			return
		}
		r.emitCancelled(op, "cut off by the cancel; the next update carries it out")
		r.finish(e, Reply{Result: ResultFail, Error: "the update was cancelled"})
		return
	case ev.Outcome == OutcomeFailed:
		r.emitFailed(op, ev.Error)
		r.recordViews(op, e.Old, ev.Views)
		r.readNextTime(e, ev)
		r.diagnose("error", e.URN, "%s", ev.told(op.Step))
		r.failEntry(e, ev.Error)
		return
	}
	r.applyResult(e, ev)
	r.takeIn(e)
	r.record(e, op.Op)
	if e.Kind == StepImport || e.Kind == StepImportReplacement {
		r.recordViews(op, e.New.Key, ev.Views)
		r.imported(e, op.Op)
		return
	}
	defer r.recordViews(op, e.New.Key, ev.Views) // shown after the step itself
	if ev.Outcome == OutcomePartial {
		r.partial(e, op, ev)
		return
	}
	r.warnOfMoved(e, ev.Moved)
	e.Awaited = ev.Awaited
	e.Answered = ev.Answered && op.Step.Answer.to(e)
	if !ev.Answered {
		e.ViewError = ViewError(ev.Views)
	}
	if e.New.Custom {
		next := e.New
		op.Step.New = &next
		if r.runAfterHooks(op) {
			return
		}
	}
	r.succeed(e, op.Op)
}

// succeed shows that a step succeeded, counts it and answers the program. The entry's state is recorded already. An
// import never comes here: imported lets the plan that follows do the rest.
func (r *Run) succeed(e *entry, op int) {
	r.emitStep(EmitOutputs, op, e)
	if e.Kind == StepCreateReplacement || e.Kind == StepReadReplacement {
		r.emitReplace(e, op)
	} else {
		r.countRead(e)
	}
	if e.ViewError != "" { // as in Pulumi, nothing goes on from it
		r.failEntry(e, e.ViewError)
		return
	}
	if e.Awaited != nil && !r.Stopped {
		r.await(e, 0)
		return
	}
	r.done(e, e.stables())
}

// partial fails an entry whose resource exists but did not initialise. Its state is recorded with the reasons; the next
// update repairs it by an update step.
//
// It is not remembered as Done: another epoch decides about the resource again.
func (r *Run) partial(e *entry, op *operation, ev StepFinished) {
	for _, reason := range ev.InitErrors {
		r.diagnose("error", e.URN, "%s", reason)
	}
	r.emitFailed(op, "the resource exists, but its initialisation failed")
	r.failEntry(e, fmt.Sprintf("%s exists, but its initialisation failed", e.URN))
}
