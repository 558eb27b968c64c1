package engine

// StartsAgain begins the message that a program which was lost is started again.
const StartsAgain = "The program starts again"

// startEpoch begins another registration pass over the state reached so far: the program was lost and starts again.
// Epochs only grow, so an event that repeats an earlier one is ignored. Once deletions have begun, a program starts
// again only if it waited for their hooks.
//
//   - Steps that were issued go on, since they may have had an effect. attach or predecessor finds them when their
//     resources are registered again. Creates that wait for a person wait on.
//   - Queries and steps that were not issued are forgotten, because the program will ask again. A query keeps its
//     number until its result is there.
//   - Refreshes and settles belong to the update and not to the program, so they keep their places in the queue.
//   - The update's errors and refusals stay: a program that starts again does not undo them.
//
// The entries are dropped before resetEpoch clears the lists in which they are found.
func (r *Run) startEpoch(epoch int) {
	switch {
	case epoch <= r.Epoch || r.Phase > phaseProgram && !r.lingers():
		return
	case r.Phase == phaseEnded: // the program was only to exit
		r.Exit = &ProgramExited{Epoch: r.Epoch}
		return
	}
	if r.Epoch > 0 && !r.Cancelled { // a cancel ends the program, too
		r.diagnose("info", "", StartsAgain+", because its process or its worker was lost. What is done stays done.")
	}
	r.Phase = min(r.Phase, phaseProgram)
	r.forgetStackAnalysis()
	r.Epoch = epoch
	for _, e := range r.Entries {
		if e.Stage != stageDone && !r.running(e) {
			r.drop(e.Op)
		}
	}
	r.dropPaused()
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

// resetEpoch forgets what holds for one epoch only. What the update has learnt about each URN stays in the first group
// of its mark, so that a goal which is done is answered and not carried out a second time.
func (r *Run) resetEpoch() {
	r.Entries, r.Seen, r.Exit, r.Waits, r.Exports = nil, nil, nil, nil, nil
	r.Early, r.EarlyNames = nil, nil
	r.forgetEpoch()
	r.derive()
}

// attach connects an entry with the step of its URN that an earlier epoch began: the same goal takes the step over,
// another one waits for its end and is then compared with what the step left. Any other operation of the URN, such as a
// deletion, is waited for as well. It reports whether the entry left its stage.
//
// The entry of the earlier epoch takes the place of the new one, because the operation refers to it. It gets the new
// epoch and sequence number, so its reply goes to the program that is running now; a reply that was sent ahead for the
// earlier epoch does not count as an answer, see Reply.to.
func (r *Run) attach(e *entry, op *operation) bool {
	if op.For != forGoal || op.Entry.Again != nil || op.Entry.goal() != e.goal() || op.Entry.Read != e.Read {
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
	if ev.Epoch != r.Epoch || r.Exit != nil {
		return
	}
	r.Exit = &ev
	r.abandonHooks()
	if ev.Error == "" || r.Cancelled { // a cancelled update has refused what its program asked for
		return
	}
	if !ev.Bailed && !r.Stopped {
		r.diagnose("error", "", "%s", ev.Error)
	}
	r.recordAhead()
	r.noteError(ev.Error)
	// There is no program to answer any more, so what was not issued does not begin.
	r.stop()
}
