package engine

import (
	"fmt"
	"slices"
)

// A reply often depends on nothing but how a step or a plan ends. It is then sent with the command, and the host that
// executes the command hands it to the program, which goes on while the result travels to the core. What the program
// registers next finds an entry that is not done yet and waits for it as for any other: so nothing is decided in
// another order. A reply is sent ahead only if nothing that happens meanwhile can change it.

// answer queues the reply to an entry, unless the program has it already or is not the one that asked.
func (r *Run) answer(e *entry, reply Reply) {
	if e.Epoch != r.Epoch || e.Answered || e.Again != nil {
		return
	}
	reply.Epoch, reply.Seq, reply.URN = e.Epoch, e.Seq, e.URN
	if !r.answeredAhead(e.Ahead, reply) {
		r.ready.Replies = append(r.ready.Replies, reply)
	}
}

// refuse answers an entry that will not be carried out because the update is ending. It is no error of its own. It must
// not be called for an entry whose step was issued: the outcome of that step is still to be recorded.
func (r *Run) refuse(e *entry) {
	r.drop(e.Op)
	r.finish(e, Reply{Result: ResultFail, Error: updateEnds})
}

// updateEnds is the answer to what is not carried out because of an error elsewhere.
const updateEnds = "the update is ending; see its diagnostics"

// reject fails an entry that is refused, with an error that is its own, and ends the update as bail does. A preview
// that goes on after errors does not end, so that it shows everything that would be refused.
func (r *Run) reject(e *entry, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	r.diagnose("error", e.URN, "%s", message)
	if r.goal.DryRun {
		r.failEntry(e, message)
		return
	}
	r.bail(e, message)
}

// bail fails an entry for which no step was made, because its provider could not plan it or because it was refused.
// This has been reported. An update that goes on after errors goes on: Pulumi does so only after steps that failed, and
// leaves it to chance what it has done until then.
func (r *Run) bail(e *entry, message string) {
	if r.goal.ContinueOnError {
		r.failEntry(e, message)
		return
	}
	r.bailOut(e, message)
}

// bailOut is bail for what ends every update.
func (r *Run) bailOut(e *entry, message string) {
	r.finish(e, Reply{Result: ResultFail, Error: message})
	r.noteError(message)
	r.stop()
}

// failEntry fails an entry whose step has failed, which has been reported. The entry ends before the update is stopped,
// so that it gets its own error and not the general one of refuse.
func (r *Run) failEntry(e *entry, message string) {
	r.finish(e, r.failure(message))
	r.fail(message)
}

// failure returns the reply of an entry that failed. In an update that goes on after errors it has no error text: the
// program's call returns, with the result "fail", and the program goes on.
func (r *Run) failure(message string) Reply {
	if r.goal.ContinueOnError {
		message = ""
	}
	return Reply{Result: ResultFail, Error: message}
}

// finish ends an entry with its reply. Every entry of the epoch ends here, once, except one that gives way in attach.
func (r *Run) finish(e *entry, reply Reply) {
	r.become(e, stageDone, 0)
	e.Result = reply.Result
	// It may have failed before its stored state was found, which must then not be deleted as undeclared.
	if reply.Result != ResultSuccess && e.Old == "" {
		r.want(e.URN, e.Reg)
	}
	r.answer(e, reply)
	r.acceptEarly(e)
}

// done ends an entry well and remembers it for later epochs. Its state must be recorded before: Done refers to it by
// key.
func (r *Run) done(e *entry, stables []string) {
	r.mark(e.URN).Done = &finished{Digest: e.goal(), Key: e.New.Key, Kind: e.Kind, Stables: stables}
	r.bound(e)
	r.finish(e, r.success(e, stables))
}

// success is the reply of an entry that ended well; its object is what the program sees: the outputs of a custom
// resource, and the inputs of a component, whose outputs the program registers itself later.
func (r *Run) success(e *entry, stables []string) Reply {
	object := e.New.Outputs
	if !e.New.Custom {
		object = e.New.Inputs
	}
	reply := Reply{ID: e.New.ID, Object: object, Stables: stables, Result: ResultSuccess, Unknown: e.unknown(r.goal)}
	if r.adopts() {
		inputs := e.New.Inputs
		reply.Inputs = &inputs
	}
	return reply
}

// unknown reports that a preview cannot know the resource's outputs.
func (e *entry) unknown(g Goal) bool {
	return g.DryRun && e.New.Custom && slices.Contains(mutating, e.Kind)
}

// mutating are the kinds of steps whose outputs are new.
var mutating = []StepKind{StepCreate, StepCreateReplacement, StepUpdate}

// stables are the properties that keep their values whatever the entry's step does.
func (e *entry) stables() []string {
	if e.Plan == nil {
		return nil
	}
	return e.Plan.Diff.StableKeys
}

// afterStep is the reply to the entry if its step is done; nil if that is not certain before. After an import a plan
// follows. A preview has no step to send it with.
func (r *Run) afterStep(e *entry) *Reply {
	if r.goal.DryRun || !e.New.Custom || e.Again != nil || !slices.Contains(mutating, e.Kind) ||
		len(e.New.Hooks[hookPoints[e.Kind].after]) > 0 {
		return nil
	}
	return r.precomputed(e, Reply{Stables: e.stables(), Result: ResultSuccess})
}

// afterPlan is the reply to the entry if its plan shows no change; nil if that is not certain before. Only what was
// registered earlier and is not done could decide otherwise, by a cascade that takes the entry's old state. What is
// registered later cannot: its cascades wait for the entry.
func (r *Run) afterPlan(e *entry, old *State) *Reply {
	certain := old != nil && e.Ahead == nil && e.Again == nil && e.New.Custom && !e.Imported && e.Forced == nil &&
		!old.External && !old.PendingReplacement && len(old.InitErrors) == 0
	if !certain || r.Entries[r.firstOpen()] != e {
		return nil
	}
	return r.precomputed(e, Reply{ID: old.ID, Object: old.Outputs, Result: ResultSuccess})
}

// promised reports that the program may have got its reply to the entry together with the entry's plan, which is in
// flight or waits for its turn. What it was told is recorded, even if it has failed since.
func (r *Run) promised(e *entry) bool {
	return e.Stage == stagePlanning && r.Ops[e.Op].Promised || e.Stage == stagePlanned && e.Answered
}

// precomputed addresses a reply that is sent ahead; nil for an entry of an earlier epoch, which nobody waits for.
func (r *Run) precomputed(e *entry, reply Reply) *Reply {
	if e.Epoch != r.Epoch {
		return nil
	}
	reply.Epoch, reply.Seq, reply.URN = e.Epoch, e.Seq, e.URN
	return &reply
}

// to reports that a reply which was sent ahead is the one that the entry waits for. It is not if the entry has been
// taken over by a later epoch since: then the reply went to a program that is gone.
func (a *Reply) to(e *entry) bool { return a != nil && a.Epoch == e.Epoch && a.Seq == e.Seq }
