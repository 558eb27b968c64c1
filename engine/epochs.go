package engine

// startEpoch begins another registration pass over the state reached so far: the program was lost and starts again.
// Steps that were issued go on, and attach finds them; queries and what was not issued are forgotten, because the
// program will ask again. Epochs only grow, so an event that repeats an earlier one is ignored.
func (r *Run) startEpoch(epoch int) {
	if epoch <= r.Epoch || r.Phase > phaseProgram {
		return
	}
	r.Epoch = epoch
	for _, e := range r.Entries {
		if e.Stage != stageDone && !r.running(e) {
			r.drop(e.Op)
		}
	}
	queue := r.Queue
	r.Queue = nil
	for _, op := range queue {
		if r.Ops[op] != nil && (r.Ops[op].For == forRefresh || r.Ops[op].For == forPending) {
			r.Queue = append(r.Queue, op)
			continue
		}
		delete(r.Ops, op)
	}
	for _, op := range r.comparing {
		r.drop(op)
	}
	r.dropDeletions()
	r.resetEpoch()
}

// resetEpoch forgets what holds for one epoch only.
func (r *Run) resetEpoch() {
	r.Entries, r.Seen, r.Exit, r.Exports = nil, nil, nil, nil
	r.forgetEpoch()
	r.derive()
}

// attach connects an entry with the step of its URN that an earlier epoch began: the same goal takes the step over,
// another one waits for its end. It reports whether the entry left its stage. The entry of the earlier epoch takes the
// place of the new one, because the operation refers to it.
func (r *Run) attach(e *entry, op *operation) bool {
	if op.For != forGoal || op.Entry.Reg.Digest != e.Reg.Digest || op.Entry.Read != e.Read {
		return false
	}
	running := op.Entry
	running.Epoch, running.Seq, running.Order = e.Epoch, e.Seq, e.Order
	r.Entries[e.Order], r.byURN[e.URN] = running, running
	running.listed = false    // what lists is of this epoch
	r.become(e, stageDone, 0) // nothing waits for the entry that gave way
	if old := r.snap.Get(running.Old); old != nil && old.URN != e.URN {
		r.claim(e.URN, old.URN)
	}
	return true
}

// programExited closes the epoch. What the program asked for before goes on; if it failed, nothing more starts and
// nothing is deleted. An exit before any epoch is that of a program which could not be started.
func (r *Run) programExited(ev ProgramExited) {
	if ev.Epoch != r.Epoch && !(ev.Epoch == 0 && r.Epoch == 0) || r.Exit != nil {
		return
	}
	r.Exit = &ev
	if ev.Error == "" || r.Cancelled { // a cancelled update turns its program away
		return
	}
	if !ev.Bailed && !r.Stopped {
		r.diagnose("error", "", "%s", ev.Error)
	}
	r.noteError(ev.Error)
	// There is no program to answer any more, so what was not issued does not begin.
	r.stop()
}
