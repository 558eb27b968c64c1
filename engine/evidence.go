package engine

import (
	"fmt"
	"slices"
)

// ErrorClass is what the error of a provider tells about the effect of its call.
type ErrorClass string

// The classes of errors. Of the last two, and of "exists already", the effect is looked for where that is possible.
const (
	// ErrorDefinite: nothing happened, and a repeated call would fail again.
	ErrorDefinite ErrorClass = "definite"
	// ErrorThrottled: rejected for now; nothing happened.
	ErrorThrottled ErrorClass = "throttled"
	// ErrorNotReady: rejected because something that it needs is not there yet; nothing happened.
	ErrorNotReady ErrorClass = "not ready"
	// ErrorExists: what was to be created exists. An earlier try inside the same call may have made it.
	ErrorExists ErrorClass = "exists already"
	// ErrorAmbiguous: the call may have had its effect.
	ErrorAmbiguous ErrorClass = "ambiguous"
	// ErrorUnknown: nobody knows such an error.
	ErrorUnknown ErrorClass = "unknown"
)

// Evidence is what the error of a failed step tells, and what was found out since.
type Evidence struct {
	Class ErrorClass `json:"class"`
	By    string     `json:"by,omitempty"` // what told it, for people
	// Look: it can be found out whether the step had its effect, and is, before it fails.
	Look bool `json:"look,omitempty"`
	// Looked says what came of that.
	Looked string `json:"looked,omitempty"`
}

// String returns the class and what told it.
func (e Evidence) String() string {
	if e.By == "" {
		return string(e.Class)
	}
	return fmt.Sprintf("%s (%s)", e.Class, e.By)
}

var (
	creates = []StepKind{StepCreate, StepCreateReplacement}
	deletes = []StepKind{StepDelete, StepDeleteReplaced}
)

// lookAfter settles a step whose error leaves open whether it had its effect, before it fails; true means that its
// result waits for that.
func (r *Run) lookAfter(op *operation, ev StepFinished) bool {
	if ev.Evidence == nil || !ev.Evidence.Look ||
		!slices.Contains(creates, op.Step.Kind) && !slices.Contains(deletes, op.Step.Kind) {
		return false
	}
	if op.Lost { // the attempt before it is in question, too, whatever the error says
		ev.Evidence = &Evidence{Class: ErrorAmbiguous, By: "an earlier answer was lost", Look: true}
	}
	op.Ended, op.Lost, op.Reason = &ev, false, ev.why()
	r.settle(op, aboutError)
	return true
}

// doubted ends the doubt about a step that failed, by what settling has found: it returns how the step ended.
func (r *Run) doubted(op *operation, found StepFinished) StepFinished {
	ended := *op.Ended
	switch found.Outcome {
	case OutcomeDone, OutcomePartial:
	case OutcomeAbsent:
		e := *ended.Evidence
		e.Look, e.Looked = false, found.Error
		if e.Looked == "" {
			e.Looked = "it was looked for, and is not there"
			if slices.Contains(deletes, op.Step.Kind) {
				e.Looked = "it was looked for, and is still there"
			}
		}
		ended.Evidence = &e
		return ended
	default:
		return found
	}
	what := "was created all the same, and is taken over"
	if slices.Contains(deletes, op.Step.Kind) {
		what = "is gone all the same"
	}
	r.diagnose("warning", op.URN, "%s %s; it was looked for, because this error is %s: %s", op.URN, what, ended.Evidence,
		ended.why())
	return found
}

// readNextTime has the next update read a resource before it is compared, if an error leaves open whether it was
// changed: what was changed already may be refused for ever.
func (r *Run) readNextTime(e *entry, ev StepFinished) {
	old := r.snap.Get(e.Old)
	if e.Kind != StepUpdate || old == nil || ev.Evidence == nil || ev.Evidence.Class != ErrorAmbiguous {
		return
	}
	next := *old
	next.RefreshBeforeUpdate = true
	r.change(Delta{Kind: DeltaSet, State: &next})
}

// told returns the error of a failed step with what is known about its effect.
func (ev StepFinished) told(step *Step) string {
	e := ev.Evidence
	if e == nil || e.Class == ErrorDefinite {
		return ev.Error
	}
	note := ""
	switch {
	case e.Looked != "":
		note = e.Looked
	case e.Class == ErrorThrottled || e.Class == ErrorNotReady:
	case slices.Contains(creates, step.Kind):
		note = fmt.Sprintf("it may have been created, and could not be looked for: no settle rule says how to find a %s "+
			"(deployctl:settle in docs/how-an-update-survives.md: read if an input is its id, list if an input tells it "+
			"from others)", step.Type)
	case e.Class == ErrorAmbiguous:
		note = "it may have been changed; the next update reads it, and decides about it again"
	default:
		return ev.Error
	}
	text := fmt.Sprintf("%s; the error is %s", ev.Error, e)
	if note != "" {
		text += ": " + note
	}
	return text
}
