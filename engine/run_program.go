package engine

import (
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// A refresh or a destroy may run the program, as Pulumi's --run-program does, so that providers get the configuration
// that it computes now:
//
//   - Providers, components, reads and the stack are registered as in an up.
//   - A custom resource that is stored gets the options of its registration. A destroy keeps its inputs and outputs, a
//     refresh reads them, and leaves out what they refer to and is not there. The program gets its outputs.
//   - A custom resource that is not stored is left out, and so is what refers to it: nothing is created.
//
// When the program has ended well, a destroy deletes everything, and a refresh reads what was not registered.

// decideWithoutCreates decides an entry as a refresh or a destroy does; it reports whether it did. The kinds of
// resources that these register as an up does are left to decide.
func (r *Run) decideWithoutCreates(e *entry, old *State) bool {
	if r.goal.Kind == KindUp || r.adopts() {
		return false
	}
	custom := e.New.Custom && !e.Read && !snapshot.IsProvider(e.New.Type)
	leftOut := r.skippedReference(e) != ""
	stored := old != nil && !old.PendingReplacement
	switch {
	case !custom && !leftOut:
		return false
	case custom && stored && r.goal.Kind == KindRefresh:
		r.refreshEntry(e, old)
	case leftOut && old != nil:
		object := old.Outputs
		r.keepOld(e, old)
		r.leaveOut(e, object)
	case old != nil && !stored: // deleted, and not replaced yet
		object := e.New.Inputs // of its registration
		r.keepOld(e, old)
		r.leaveOut(e, object)
	case leftOut || !stored:
		r.leaveOut(e, e.New.Inputs)
	case old.External: // the stack does not own it, whatever its registration says
		r.leaveAlone(e, old)
	default:
		e.New.Inputs = old.Inputs
		r.same(e, old, nil)
	}
	return true
}

// refreshEntry reads the stored resource of an entry, before the program gets its outputs.
func (r *Run) refreshEntry(e *entry, old *State) {
	e.Kind = StepRefresh
	op := r.refreshOf(old)
	op.For, op.Entry = forGoal, e
	op.Step.URN, op.Step.Type = e.URN, e.New.Type // its provider may not know the former type any more
	if !r.withoutOwner(e) {
		op.Step.Provider = r.providerFor(&e.New)
	}
	r.become(e, stageStepping, op.Op)
	r.Ops[op.Op] = op
	r.Queue = append(r.Queue, op.Op)
}

// entryRefreshed answers an entry whose resource was read. A resource that is gone leaves the snapshot at once: what
// the program registers next is decided without it.
func (r *Run) entryRefreshed(op *operation, ev StepFinished) {
	e := op.Entry
	r.refreshFinished(op, ev)
	state := r.snap.Get(op.Key)
	switch {
	case e.Stage == stageDone: // the update was stopped
	case ev.Outcome == OutcomeCancelled:
		r.finish(e, Reply{Result: ResultFail, Error: "the update was cancelled"})
	case ev.Outcome != OutcomeDone && ev.Outcome != OutcomePartial:
		r.finish(e, r.failure(ev.Error))
	case ev.ID == "" || state == nil:
		r.removeLost()
		r.leaveOut(e, Bag{})
	case r.withoutOwner(e):
		r.keepOld(e, state)
		r.done(e, nil)
	default:
		if r.skippedReference(e) != "" {
			e.New = e.New.Without(func(u urn.URN) bool { return u != "" && r.snap.Live(r.current(u)) == nil })
		}
		e.New.ID, e.New.Outputs, e.New.InitErrors = state.ID, state.Outputs, state.InitErrors
		e.New.Inputs, e.New.RefreshBeforeUpdate, e.New.Modified = state.Inputs, state.RefreshBeforeUpdate, state.Modified
		r.keepValues(e, state, op.Op)
		r.done(e, nil)
	}
}

// withoutOwner reports whether the update leaves out the parent or the provider that an entry's registration names: its
// state then keeps those that it has, and with them all else.
func (r *Run) withoutOwner(e *entry) bool {
	provider, _ := snapshot.SplitReference(e.Reg.Provider)
	return r.marked(e.Reg.Parent).LeftOut || r.marked(provider).LeftOut
}

// refreshesAlong reports that the program's registrations are read one by one, and not before it starts.
func (r *Run) refreshesAlong() bool { return r.goal.Kind == KindRefresh && r.hasProgram() }
