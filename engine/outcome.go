package engine

import (
	"slices"
	"strconv"
	"strings"
)

// The ways in which an error affects an update:
//
//              the first error is kept   nothing new starts               reported by
//  diagnose    no                        no                               itself
//  noteError   yes                       no                               the caller
//  fail        yes                       yes, unless --continue-on-error  the caller
//  stop        no                        yes                              the caller
//  bail        yes                       yes, unless --continue-on-error  the caller, for what is refused
//
// A first error forbids the deletions at the end of the program, unless --continue-on-error allows them; see
// advanceProgram.

// fail records an error that makes the update fail; the first one becomes the error of the update. Unless the update
// goes on after errors, nothing new starts. It does not report the error: diagnose does.
func (r *Run) fail(message string) {
	r.noteError(message)
	if !r.goal.ContinueOnError {
		r.stop()
	}
}

// noteError makes the update fail at its end without stopping it.
// It is for errors of which the rest of the update is independent: a preview that shows what would be refused, a
// protected resource among deletions, an undecided create.
func (r *Run) noteError(message string) {
	if r.FirstError == "" {
		r.FirstError, r.FirstAbout = message, r.About // which its caller has reported
	}
}

// failUnknown makes the update fail because the outcome of a step stays unknown. After a cancel it does not: what a
// cancel leaves undone is no failure. What does not depend on a create whose outcome is unknown goes on.
func (r *Run) failUnknown(message string, create bool) {
	switch {
	case r.Cancelled:
	case create && !r.Stopped:
		r.noteError(message)
	default:
		r.fail(message)
	}
}

// stop ends the update early: what has not started is refused, creates that wait for a person are left pending, what
// runs finishes. It happens once. After it an entry is done, has an issued step, or has a plan that is in flight with
// its reply, and the run ends once those have ended.
//
// Stopped is set first: leavePending replies otherwise while the update goes on, and fail, which it calls, must not
// begin here again. Resources that a refresh found gone leave the snapshot here, because a phase that a cancel skips
// does not remove them any more.
func (r *Run) stop() {
	if r.Stopped {
		return
	}
	r.Stopped = true
	r.removeLost()
	for _, op := range slices.Clone(r.Waiting) {
		r.leavePending(r.Ops[op], "the update ended while it waited for an answer")
	}
	r.leavePaused()
	for _, op := range r.Queue {
		r.drop(op)
	}
	r.Queue = nil
	for _, e := range r.Entries {
		if e.Stage != stageDone && !r.running(e) && !r.promised(e) {
			r.refuse(e)
		}
	}
	r.dropDeletions()
}

// cancelled stops the update at a person's request: what runs finishes or, if the cancel is forced, is abandoned. A
// forced cancel may follow a first one; repeating either does nothing.
//
// A phase that a stopped update would wait in is skipped. Without a program there is nothing to wait for but the steps
// that run. With one, the program's phase still waits for its exit, unless it was never started. An abandoned step ends
// with a StepFinished like any other; its outcome may be unknown.
func (r *Run) cancelled(c Cancelled) {
	if !r.Cancelled {
		r.Cancelled = true
		if !c.Forced {
			r.diagnose("warning", "", "the update was cancelled; what runs finishes")
		}
	}
	r.stop()
	if r.Phase != phaseEnded && !r.hasProgram() {
		r.Phase = max(r.Phase, phaseDeleting)
	}
	if r.Phase < phaseProgram {
		r.Phase = phaseProgram
	}
	if !c.Forced || r.Forced {
		return
	}
	r.Forced = true
	if len(r.Slots) > 0 {
		r.diagnose("warning", "", "the update was cancelled by force; what runs is cut off")
	}
	for _, op := range r.Slots {
		r.ready.Start = append(r.ready.Start, Abandon{Op: op})
	}
	r.abandonAnalyses()
}

// unsupported fails an update whose driver passes on what this core does not know: a newer client or service sent it.
// It counts as a refusal, so nothing is deleted, not even with --continue-on-error: what was not understood may have
// declared a resource.
func (r *Run) unsupported(what string) {
	message := "this build does not know " + what + "; upgrade the worker"
	if !r.Stopped {
		r.diagnose("error", "", "%s", message)
	}
	r.noteError(message)
	r.Refusals++
	r.stop()
}

// Result returns the summary of the update; false while it has not ended. An error precedes a cancel: an update that
// failed and was cancelled has failed. Operations that stay unknown after a cancel are no error; the sentence names
// them.
func (r *Run) Result() (Result, bool) {
	if r.Phase != phaseEnded || !r.idle() || r.lingers() {
		return Result{}, false
	}
	_, pending := r.snap.States()
	res := Result{
		Status: StatusSucceeded, Changes: r.Changes, Error: r.FirstError, Resource: r.FirstAbout, Pending: len(pending),
		IntegrityError: r.Integrity, NamesNothing: r.Misnamed, Policies: r.policyPacks(),
	}
	switch {
	case r.FirstError != "":
		res.Status = StatusFailed
	case r.Violated != "":
		res.Status, res.Error, res.Resource = StatusFailed, r.Violated, ""
	case r.Cancelled:
		res.Status, res.Error = StatusCancelled, "the update was cancelled"+unknownOutcomes(pending)
	}
	return res, true
}

// mostUnknown is how many operations unknownOutcomes names.
const mostUnknown = 10

// unknownOutcomes names the operations that a cancelled update leaves for the next one to settle.
func unknownOutcomes(pending []PendingOperation) string {
	if len(pending) == 0 {
		return ""
	}
	names := make([]string, 0, mostUnknown)
	for _, p := range pending[:min(len(pending), mostUnknown)] {
		names = append(names, p.Kind+" "+string(p.State.URN))
	}
	text := strings.Join(names, ", ")
	if more := len(pending) - len(names); more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return "; it is not known what became of " + text + ": the next update looks"
}

// integrityMessage is the error of an update whose state breaks an invariant: what is wrong, and what to do next.
func integrityMessage(broken string) string {
	return "the state breaks an invariant, which is a fault of this program: " + broken +
		"; all that was done is recorded, and the " +
		"state is repaired as it is stored. If it cannot be, the next update says so and starts nothing: then export " +
		"it with " +
		"`deployctl stack export --file state.json`, correct the file, and put it back with `deployctl stack import " +
		"--file state.json`"
}
