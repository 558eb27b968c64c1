package engine

// startEpoch begins another registration pass over the state reached so far. Steps that run go on; plans and whatever
// has not been sent are forgotten, because the program will ask again.
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

// resetEpoch forgets the facts of an epoch.
func (r *Run) resetEpoch() {
	r.Entries, r.Seen, r.Exit, r.Exports = nil, nil, nil, nil
	r.forgetEpoch()
	r.derive()
}

// attach sends an entry to the step of its URN that an earlier start of the program began: the same goal takes the
// step over, another one waits for it. It reports whether the entry left its place.
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

// programExited closes the epoch. What the program asked for before goes on; if it failed, nothing is deleted.
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
	// Nobody is there any more to be answered: what has not been sent is not begun.
	r.stop()
}
