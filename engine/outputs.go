package engine

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// registerOutputs attaches outputs to a component, whose registration must have its reply. Those of the stack are kept
// for exportOutputs. A program that was answered ahead may send them before the entry is done: then they wait for that.
// Like a registration it has a sequence number, and a repeated message is ignored. Outputs of a resource that failed,
// or that targets leave out, are accepted and dropped: the program has done nothing wrong.
func (r *Run) registerOutputs(ev OutputsRegistered) {
	if ev.Epoch != r.Epoch || r.bySeq[ev.Seq] {
		return
	}
	r.bySeq[ev.Seq] = true
	r.Seen = append(r.Seen, ev.Seq)
	if !r.isEarly(ev.URN) {
		r.acceptOutputs(ev)
		return
	}
	if r.Early == nil {
		r.Early = map[urn.URN][]OutputsRegistered{}
	}
	r.Early[ev.URN] = append(r.Early[ev.URN], ev)
	r.EarlyNames = append(r.EarlyNames, ev.URN)
}

// acceptEarly accepts the outputs that wait for an entry, which is done now; all of them, once the program can have no
// more URNs from a replica.
func (r *Run) acceptEarly(e *entry) {
	if len(r.Early) == 0 {
		return
	}
	names := []urn.URN{e.URN, r.urnOf(e.Reg)}
	if !r.isAnsweredAhead() {
		names = append(names, r.EarlyNames...)
	}
	for _, u := range names {
		waiting := r.Early[u]
		delete(r.Early, u)
		for _, ev := range waiting {
			r.acceptOutputs(ev)
		}
	}
	if len(r.Early) == 0 {
		r.EarlyNames = nil
	}
}

// isEarly reports whether the program may have a URN from a replica, and its entry is not done. The entry may still
// have another name: it gets that of its stored state when targets leave it alone, see keepName.
func (r *Run) isEarly(u urn.URN) bool {
	if e := r.byURN[u]; e != nil {
		return e.answeredAhead()
	}
	return r.isAnsweredAhead()
}

// isAnsweredAhead reports whether a replica has answered an entry that is not done.
func (r *Run) isAnsweredAhead() bool {
	return slices.ContainsFunc(r.Entries[r.firstOpen():], (*entry).answeredAhead)
}

// answeredAhead reports whether a replica may have answered the entry, which is not done.
func (e *entry) answeredAhead() bool { return e.Stage != stageDone && e.Ahead != nil }

// acceptOutputs attaches outputs to an entry that has ended, and answers the program.
func (r *Run) acceptOutputs(ev OutputsRegistered) {
	reply := Reply{Epoch: ev.Epoch, Seq: ev.Seq, URN: ev.URN, Result: ResultSuccess}
	e := r.byURN[ev.URN]
	switch {
	case e == nil || e.Stage != stageDone:
		// Without a replica, a program that has the URN of a component has the reply to it, so the entry is done.
		reply.Result, reply.Error = ResultFail, fmt.Sprintf("outputs of %s, which the program has not registered",
			ev.URN)
	case e.New.Type == rootType:
		r.Exports = &ev // taken over at the program's end
	case e.Result == ResultSuccess && !r.marked(ev.URN).LeftOut:
		r.setOutputs(e, ev.Outputs)
		if r.runComponentHooks(e, reply) {
			return
		}
	}
	if !r.answeredAhead(ev.Ahead, reply) {
		r.ready.Replies = append(r.ready.Replies, reply)
	}
}

// exportOutputs records the outputs that the program registered for the stack. It waits for the end of the program,
// because a later epoch may register others. After an error they may be incomplete, so the stack keeps those it had;
// one that had none gets them all the same.
func (r *Run) exportOutputs() {
	if r.Exports == nil {
		return
	}
	e, had := r.byURN[r.Exports.URN], r.snap.Live(r.Exports.URN)
	if e.Result == ResultSuccess && (!r.Stopped && r.FirstError == "" || had.Outputs.Empty()) {
		r.setOutputs(e, r.Exports.Outputs)
	}
	r.Exports = nil
}

// setOutputs stores outputs in the live state of an entry, and shows them even if they are those that it had.
func (r *Run) setOutputs(e *entry, outputs Bag) {
	state := r.snap.Live(e.URN)
	if state == nil {
		return
	}
	shown := Emit{Kind: EmitOutputs, Step: e.Kind, URN: e.URN, Type: e.New.Type}
	// Even if the step has removed the old state.
	if was := r.snap.Was(e.Old); was != nil {
		old := *was // a copy: with the outputs before
		shown.Old = &old
	}
	if !state.Outputs.Same(outputs) {
		next := *state
		next.Outputs = outputs
		r.change(Delta{Kind: DeltaSet, State: &next})
		e.New = next
	}
	shown.New = r.snap.Live(e.URN)
	r.emit(shown)
}
