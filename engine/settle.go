package engine

import (
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Settling of a step goes through these outcomes, see stepFinished:
//
//  unknown      Settle is issued; the operation keeps its slot
//  absent       nothing was made: the step is issued again, or ends without effect if the update is
//               ending or an earlier update began it
//  done         something was made: it is recorded as if the answer had come
//  undecidable  a create waits for a person (Waiting), or stays in the state as a pending operation
//
// Only creates can make a duplicate, so nothing else waits for a person. If settling cannot find out the outcome of an
// update or a delete, the next update plans over what is stored and repeats the step if it is still wanted.

// settlePending settles the creates that earlier updates left undecided, each once: of two with one seed the later is
// the earlier one repeated. Other pending operations need no settling: the ordinary plan over what is stored repeats
// them if they are still wanted. An update that only settles reads what they were about, because the next may be one of
// another engine, which plans over what is stored then. The seeds are kept in the marks, so that a create that was not
// made is made under the same name.
//
// It runs once, in New, after giveDefaults. A pending operation leaves the snapshot at once if it needs no settling,
// and otherwise when its outcome is recorded. A preview settles nothing: to ask providers would take time, and nothing
// could be recorded.
func (r *Run) settlePending() {
	_, pending := r.snap.States()
	for i, p := range pending {
		switch {
		case p.Kind != "creating":
			if r.goal.Settle != nil {
				r.mark(p.State.URN).Unsure = true
			}
			r.diagnose("warning", p.State.URN, "an earlier update ended while it was %s %s", p.Kind, p.State.URN)
			r.change(Delta{Kind: DeltaEnd, Op: p.Op})
			continue
		case slices.ContainsFunc(pending[i+1:], p.RepeatedBy):
			r.change(Delta{Kind: DeltaEnd, Op: p.Op})
			continue
		case snapshot.IsProvider(p.State.Type) && !p.Done: // nothing was made; who registers it again has it configured
			r.change(Delta{Kind: DeltaEnd, Op: p.Op})
			continue
		}
		if p.Seed != nil {
			m := r.mark(p.State.URN)
			m.Seed, m.Since = p.Seed, p.Since
		}
		if r.goal.DryRun {
			r.diagnose("warning", p.State.URN, "an earlier update may have created %s%s; if the next update cannot "+
				"find out, %s", p.State.URN, lastError(p.Reason), remedy(p.State.URN))
			continue
		}
		op := &operation{Op: r.newOp(), URN: p.State.URN, For: forPending, Pending: p.Op, Reason: p.Reason}
		state := r.withDefault(p.State)
		op.Step = &Step{
			Op: op.Op, Kind: StepCreate, URN: state.URN, Type: state.Type, New: &state, Seed: p.Seed, Since: p.Since,
			Provider: r.providerFor(&state), Check: true, // what was begun may not have been checked
		}
		if p.Done {
			r.pendingSettled(op, answerOf(p))
			continue
		}
		r.Ops[op.Op] = op
		r.Queue = append(r.Queue, op.Op)
	}
}

// settle asks for the outcome of an attempt. Again says that the create will be made again in this update if it is
// absent; for a convergent provider, whose create finds the earlier attempt, nothing has to be looked for then.
func (r *Run) settle(op *operation, about inquiry) {
	op.inquire(about)
	s := Settle{Step: *op.Step, Again: about == aboutLost}
	if about == aboutError {
		s.After = op.Ended.Evidence
	}
	r.ready.Start = append(r.ready.Start, s)
}

// settleLost asks for the outcome of the attempt whose answer was lost last. The step is not issued again for an
// operation of an earlier update, and in an update that is ending.
func (r *Run) settleLost(op *operation) {
	switch {
	case op.Ended != nil:
		r.settle(op, op.Inquiry)
	case op.For == forPending || r.Stopped:
		r.settle(op, aboutLast)
	default:
		r.settle(op, aboutLost)
	}
}

// Answered returns a pending create whose answer is known although it could not be recorded as usual: its state holds
// what was created, and settling it asks no provider.
func Answered(p PendingOperation, ev StepFinished) PendingOperation {
	learn(&p.State, ev)
	p.State.Created, p.State.Modified = ev.At, ev.At
	p.Done = true
	return p
}

// answerOf returns what Answered was given.
func answerOf(p PendingOperation) StepFinished {
	return StepFinished{
		Outcome: OutcomeDone, ID: p.State.ID, Outputs: p.State.Outputs, InitErrors: p.State.InitErrors,
		RefreshBeforeUpdate: p.State.RefreshBeforeUpdate, At: p.State.Created,
	}
}

// pendingSettled records the outcome of a create of an earlier update. What it made becomes a state of the snapshot:
// the live one of its URN, with what was live before as a copy that waits for its deletion.
//
// There is no entry of a program for it, so it makes one for record; the program's own registration then finds the
// state as any other. Like complete, it ends the pending operation after the state is stored. After "failed" it stays
// pending.
func (r *Run) pendingSettled(op *operation, ev StepFinished) {
	switch ev.Outcome {
	case OutcomeDone, OutcomePartial:
		e := &entry{URN: op.URN, New: *op.Step.New, Kind: StepCreate}
		for _, name := range append([]urn.URN{op.URN}, e.New.Aliases...) {
			if old := r.snap.Live(name); old != nil {
				e.Old, e.Kind = old.Key, StepCreateReplacement
				break
			}
		}
		if old := r.snap.Get(e.Old); old != nil && old.ID == ev.ID && !old.PendingReplacement {
			r.change(Delta{Kind: DeltaEnd, Op: op.Pending}) // what was found is what is stored
			return
		}
		// What it refers to may be gone since.
		e.New = e.New.Without(func(u urn.URN) bool { return u != "" && r.snap.Live(r.current(u)) == nil })
		r.keepReferences(e.New)
		r.applyResult(e, ev)
		r.record(e, op.Op)
		r.recordViews(op, e.New.Key, ev.Views)
		r.change(Delta{Kind: DeltaEnd, Op: op.Pending}) // last, so that it is never neither stored nor pending
		r.diagnose("info", op.URN, "an earlier update had created %s; it is taken over", op.URN)
	case OutcomeAbsent:
		r.change(Delta{Kind: DeltaEnd, Op: op.Pending})
	case OutcomeFailed:
		r.diagnose("error", op.URN, "%s", ev.Error)
		r.fail(ev.Error)
	default:
	}
}

// undecidable leaves a step whose outcome settling could not find out to a person, if the update is to wait for one, or
// as a pending operation.
func (r *Run) undecidable(op *operation, ev StepFinished) {
	if op.Step.Kind != StepCreate && op.Step.Kind != StepCreateReplacement {
		// Only creates can make a duplicate; anything else is decided again by the next update.
		r.leavePending(op, ev.Error)
		return
	}
	if op.For == forPending && r.goal.ClearPendingCreates {
		r.diagnose("warning", op.URN, "it is not known whether %s was created: %s; it is forgotten, as "+
			"--clear-pending-creates asks", op.URN, ev.Error)
		r.release(op)
		r.change(Delta{Kind: DeltaEnd, Op: op.Pending})
		return
	}
	if answer := r.answerFor(op); answer != nil {
		op.Answered = true
		r.Slots = slices.DeleteFunc(r.Slots, func(o int) bool { return o == op.Op })
		r.answered(op, *answer)
		return
	}
	if !r.goal.WaitOnUnknown || r.Stopped {
		r.leavePending(op, ev.Error)
		return
	}
	r.Slots = slices.DeleteFunc(r.Slots, func(o int) bool { return o == op.Op })
	r.Waiting = append(r.Waiting, op.Op)
	r.diagnose("warning", op.URN, "%s may have been created: %s. Look for the resource, then run `deployctl resolve '%s' "+
		"--created ID` or "+
		"`--absent`; everything that does not depend on it continues", op.URN, ev.Error, op.URN)
}

// lastError says in brackets with which error the answer of a step was lost, if that is known.
func lastError(reason string) string {
	if reason == "" {
		return ""
	}
	return " (the last error was: " + reason + ")"
}

// LastError says in brackets with which error the answer of the operation's last attempt was lost; "" if that is not
// known.
func (r *Run) LastError(op int) string {
	if o := r.Ops[op]; o != nil {
		return lastError(o.Reason)
	}
	return ""
}

// recordReason records with a pending operation why its answer was lost, so that later updates can say so.
func (r *Run) recordReason(op *operation) {
	id := op.Op
	if op.For == forPending {
		id = op.Pending
	}
	for _, p := range r.snap.Pending() {
		if p.Op == id && p.Reason != op.Reason {
			p.Reason = op.Reason
			r.change(Delta{Kind: DeltaBegin, Op: id, Pending: &p})
			return
		}
	}
}

// remedy says how a person resolves a create that no update can settle.
func remedy(u urn.URN) string {
	return fmt.Sprintf("look for the resource yourself, and run `deployctl resolve '%s' --created ID` or `--absent`", u)
}

// leavePending ends a step whose outcome stays unknown: the next update finds it as a pending operation. It fails the
// update, unless that was cancelled: what a cancel leaves unknown is no failure of its own. What does not depend on an
// undecided create goes on.
func (r *Run) leavePending(op *operation, why string) {
	r.release(op)
	r.Waiting = slices.DeleteFunc(r.Waiting, func(o int) bool { return o == op.Op })
	undecided, what := pendingKinds[op.Step.Kind] == "creating", "changed"
	if undecided {
		what = "created"
	}
	message := "it is not known whether " + string(op.URN) + " was " + what
	if why != "" {
		message += ": " + why
	}
	if op.For != forPending { // an earlier update showed the beginning of those
		r.emitFailed(op, message)
	}
	if !undecided {
		r.diagnose("error", op.URN, "%s; the next update decides about it again", message)
	} else {
		r.diagnose("error", op.URN, "%s. If the next update cannot find out either, %s", message, remedy(op.URN))
		r.mark(op.URN).Undecided = true
		r.recordReason(op)
	}
	switch goesOn := undecided && !r.Stopped; {
	// No error text: the program goes on with what does not depend on it.
	case op.Entry != nil && goesOn:
		r.finish(op.Entry, Reply{Result: ResultFail})
	case op.Entry != nil:
		r.finish(op.Entry, r.failure(message))
	case r.deletionOf[op.Key] != nil:
		r.failDeletion(r.deletionOf[op.Key])
	}
	r.failUnknown(message, undecided)
}

// answerFor returns the answer that came with the goal, if it was not given yet; nil when there is none.
func (r *Run) answerFor(op *operation) *Resolved {
	if r.goal.Settle == nil || op.For != forPending || op.Answered || r.Stopped {
		return nil
	}
	i := slices.IndexFunc(r.goal.Settle.Answers, func(a Resolved) bool { return a.URN == op.URN })
	if i < 0 {
		return nil
	}
	return &r.goal.Settle.Answers[i]
}

// resolved gives a person's answer to the create that waits for it. An answer about anything else is ignored.
func (r *Run) resolved(ev Resolved) {
	for _, n := range r.Waiting {
		if op := r.Ops[n]; op.URN == ev.URN {
			r.Waiting = slices.DeleteFunc(r.Waiting, func(o int) bool { return o == n })
			r.answered(op, ev)
			return
		}
	}
}

// answered applies a person's answer about a create, which has no slot: it is read under the id that was named, made
// again, or, if it belongs to an earlier update, forgotten.
//
// An id is not believed: the step is issued with Adopt, which reads the resource, and a read that finds nothing puts
// the question again. "It was not made" is believed. The operation keeps its number throughout.
func (r *Run) answered(op *operation, ev Resolved) {
	if ev.ID != "" {
		next := *op.Step.New
		next.ID = ev.ID
		op.Check = op.Step.Check
		op.Step.New, op.Step.Adopt, op.Step.Check = &next, true, false
	}
	if ev.ID == "" && (op.For == forPending || op.Ended != nil) {
		end := StepFinished{Op: op.Op, Outcome: OutcomeAbsent}
		if op.Ended != nil {
			end = *op.Ended
			if op.Inquiry == aboutError {
				e := *end.Evidence
				e.Look, e.Looked = false, "somebody has looked for it, and it is not there"
				end.Evidence = &e
			}
		}
		delete(r.Ops, op.Op)
		r.complete(op, end)
		return
	}
	if op.Ended == nil {
		op.inquire(aboutStep)
	}
	op.Lost = false // a person has looked
	// It takes a slot again: to be read under its id, or to be made after all.
	r.Slots = append(r.Slots, op.Op)
	r.ready.Start = append(r.ready.Start, *op.Step)
}
