package engine

import "slices"

// fail takes note of an error that makes the update fail. Unless the update goes on after errors, nothing new starts.
func (r *Run) fail(message string) {
	if r.FirstError == "" {
		r.FirstError = message
	}
	if !r.goal.ContinueOnError {
		r.stop()
	}
}

// stop refuses what has not started; what runs finishes.
func (r *Run) stop() {
	if r.Stopped {
		return
	}
	r.Stopped = true
	r.removeLost()
	for _, op := range slices.Clone(r.Waiting) {
		r.leavePending(r.Ops[op], "the update ended while it waited for an answer")
	}
	for _, op := range r.Queue {
		r.drop(op)
	}
	r.Queue = nil
	for _, e := range r.Entries {
		if e.Stage != stageDone && !r.running(e) {
			r.refuse(e)
		}
	}
	r.dropDeletions()
}

// running reports that a step of the entry was issued, so that its end will be told, be it by a person.
func (r *Run) running(e *entry) bool {
	return e.Op != 0 && (slices.Contains(r.Slots, e.Op) || slices.Contains(r.Waiting, e.Op))
}

// drop forgets an operation that was not issued; of one that was, only its meaning.
func (r *Run) drop(op int) {
	if o, ok := r.Ops[op]; ok && o.Step == nil {
		o.For, o.Entry = forNothing, nil
		return
	}
	delete(r.Ops, op)
}

// cancelled ends the update: what runs finishes, and if forced is abandoned.
func (r *Run) cancelled(c Cancelled) {
	if !r.Cancelled {
		r.Cancelled = true
		if !c.Forced {
			r.diagnose("warning", "", "the update was cancelled; what runs finishes")
		}
	}
	failed := r.FirstError
	r.stop()
	r.FirstError = failed // what a cancel leaves undone is no failure
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
		r.out = append(r.out, Abandon{Op: op})
	}
}
