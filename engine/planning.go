package engine

import (
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// A decision has two halves. decide issues the question that has to be asked, as soon as all that the entry refers to
// is done; questions of independent entries are in flight together. commit acts on the answer, in order of registration
// where an earlier decision can change it. A create outside a preview has no question and goes straight to its step.

// decide sends an entry the way that its kind of resource goes: left alone, a read, an import, a component, a
// comparison of providers, or a plan. It runs again, from held, when an import was read or providers were compared. So
// nothing in it may depend on being the first call. The order of the cases is that of their precedence: a selection
// restricts every kind, and a read or an import decides by id before any provider is compared.
func (r *Run) decide(e *entry) {
	old := r.snap.Get(e.Old)
	r.markNamed(e)
	option, advice := r.leftOutBy()
	switch {
	case r.declaresSnippet(old):
		r.reject(e, "%s belongs to a snippet of the stack (`pulumi do`), so the program must not declare it, too; "+
			"`pulumi state promote` makes it the program's", old.URN)
	case !r.selected(e):
		r.leaveAlone(e, old)
	case r.decideWithoutCreates(e, old):
		// a refresh or a destroy
	case r.decideAdoption(e, old):
		// an import
	case r.skippedReference(e) != "":
		r.reject(e, "%s depends on %s, which %s leaves out and which does not exist yet; %s",
			e.URN, r.skippedReference(e), option, advice)
	case r.circularReference(e) != "":
		r.reject(e, "%s now depends on %s, which %s leaves as it was: depending on %s; %s",
			e.URN, r.circularReference(e), option, e.URN, advice)
	case e.Read:
		r.decideRead(e, old)
	case e.imports(old):
		r.decideImport(e, old)
	case e.New.Type == BindingType:
		r.decideBinding(e, old)
	case !e.New.Custom:
		r.decideComponent(e, old)
	case old != nil && r.compare(e, old):
		// planned when the comparison is there
	default:
		r.plan(e, old)
	}
}

// decideComponent decides about a component. Only the snapshot has it, so there is no plan unless policy packs analyse
// it, and its step ends at once. A replacement of one goes through commit all the same, with a plan made here, because
// resources that are replaced with it may have to be deleted first.
func (r *Run) decideComponent(e *entry, old *State) {
	if r.goal.Policies && e.New.Type != BindingType {
		r.plan(e, old)
		return
	}
	e.Forced = r.force(e, old)
	switch diff := e.componentDiff(old); {
	case old == nil && r.adopts() && e.New.Type != rootType:
		e.Kind = StepImport
	case old == nil:
		e.Kind = StepCreate
	case diff.Change == ChangeReplace:
		e.Plan = &Planned{Inputs: e.New.Inputs, Diff: diff} // as if it had been asked for
		r.become(e, stagePlanned, 0)
		return
	// same stores the goal's header even so: other fields of it may have changed.
	case diff.Change == ChangeNone:
		r.same(e, old, nil)
		return
	default:
		e.Kind, e.New.Outputs = StepUpdate, old.Outputs
	}
	r.enqueue(e, false)
}

// carryOut makes the step of a component, which calls no provider: shown, recorded and answered in this order, as a
// step with a call is.
func (r *Run) carryOut(e *entry) {
	op := r.newOp()
	r.emitStep(EmitPre, op, e)
	e.stamp(e.At)
	r.record(e, op)
	r.succeed(e, op)
}

// force returns the reasons for which the core itself replaces a resource, in the place of property names; none is an
// ordinary plan. They are Pulumi's: a taint or --replace, a provider that cannot go on, replaceWith, deletedWith and
// replacementTrigger. The first that applies is shown. A resource that was replaced in this update, by an earlier epoch
// for example, is not replaced a second time; nor is one that was just imported.
func (r *Run) force(e *entry, old *State) []string {
	switch {
	case old == nil || e.Imported || r.marked(e.URN).Replaced:
		return nil
	case r.replaced.match(e.URN), old.Taint:
		return []string{"id"}
	case e.Changed:
		return []string{"provider"}
	// The entry refers to what replaceWith names, so that is done and the mark is final.
	case slices.ContainsFunc(e.New.ReplaceWith, func(u urn.URN) bool { return r.marked(u).Replaced }):
		return []string{"replaceWith"}
	// What it was deleted with takes it along.
	case r.marked(e.New.DeletedWith).Replaced:
		return []string{"deletedWith"}
	case triggers(old.TriggerValue, e.New.TriggerValue):
		return []string{"replacementTrigger"}
	}
	return nil
}

// triggers reports that a replacementTrigger replaces. One that is new, was taken away, or only became secret does not.
// A TriggerValue that is empty stands for a trigger that is null or not set.
func triggers(was, now string) bool {
	return now == UnknownTrigger || was != "" && now != "" && was != now
}

// plan asks for Check and Diff. A resource without an old state needs no decision between Check and Create: outside a
// preview it goes straight to its step, which checks first.
//
// Recreate is set where a Diff has no meaning: a replacement is certain, the old resource has been deleted, or it was
// never owned. The inputs are then checked without the old ones, because defaults that a provider made for the old
// resource, such as its name, must not be used for the new one.
func (r *Run) plan(e *entry, old *State) {
	// A hook gets the inputs that the provider has checked.
	look := r.look(e, old)
	if old == nil && !r.goal.DryRun && len(e.New.Hooks[BeforeCreate])+len(e.New.Hooks[OnError]) == 0 &&
		e.Reg.Bound == nil && !r.analyses(e) && (look == nil || r.goal.Plan == nil) {
		e.Kind = StepCreate
		r.enqueue(e, true)
		return
	}
	e.Forced = r.force(e, old)
	p := Plan{
		URN: e.URN, Goal: e.Reg, Old: r.reference(e.Old), Provider: r.providerFor(&e.New), Seed: e.Seed,
		Recreate: old != nil && (e.Forced != nil || old.PendingReplacement || old.External), Preview: r.goal.DryRun,
		Look: look,
	}
	if r.goal.DryRun {
		p.Views = r.viewStates(e.Old)
	}
	if r.analyses(e) {
		p.Analyze = true
		if old != nil && old.URN != e.URN { // of all aliases, policy packs get the one that was found
			p.Aliases = []urn.URN{old.URN}
		}
	}
	if r.plannedAhead(e, p) {
		return
	}
	r.become(e, stagePlanning, r.newQuery(&operation{URN: e.URN, Entry: e, For: forPlan}))
	p.Op, p.Answer = e.Op, r.afterPlan(e, old)
	r.Ops[e.Op].Promised = p.Answer != nil
	r.ready.Start = append(r.ready.Start, p)
}

// planned keeps a plan for commit. Until it is committed, what was registered earlier may still delete the entry's old
// state: then replan discards the plan, and the entry plans again. An error in the plan is kept, too, and fails the
// entry only when it is committed.
func (r *Run) planned(ev Planned) {
	op := r.takeQuery(ev.Op)
	if op == nil {
		return
	}
	if r.Stopped && (!ev.Answered || ev.Diff.Change != ChangeNone) {
		r.refuse(op.Entry)
		return
	}
	op.Entry.Plan, op.Entry.Answered = &ev, ev.Answered
	r.become(op.Entry, stagePlanned, 0)
}

// commit turns a plan into a step, unless something that was registered earlier must be decided first; it reports
// whether the entry left its stage.
func (r *Run) commit(e *entry) bool {
	if e.blockedOn = r.waitsFor(e); e.blockedOn != nil || r.takesTurns(e) {
		return false
	}
	p, old := e.Plan, r.snap.Get(e.Old)
	switch {
	case p.Error != "":
		r.diagnose("error", e.URN, "%s", p.Error)
		r.bail(e, p.Error)
		return true
	case len(p.Failures) > 0:
		r.rejectInputs(e, p.Failures)
		return true
	case r.violates(e):
		return true
	case p.Found != nil:
		r.found(e, *p.Found, nil)
		return true
	}
	e.New.Inputs = p.Inputs
	if !e.New.Custom {
		p.Diff = e.componentDiff(old)
	}
	switch {
	case old == nil:
		e.Kind = StepCreate
		r.enqueue(e, false)
	// replace also makes the create of a resource that is pending its replacement: the delete half is done.
	case old.External || old.PendingReplacement || e.Forced != nil || p.Diff.Change == ChangeReplace:
		return r.refuseReplacement(e) || r.replace(e, old)
	// A resource that did not initialise is updated even without a difference, which is how its provider repairs it.
	case p.Diff.Change == ChangeUpdate || len(old.InitErrors) > 0:
		e.Kind, e.New.ID = StepUpdate, old.ID
		if !e.New.Custom {
			e.New.Outputs = old.Outputs
		}
		r.enqueue(e, false)
	default:
		r.same(e, old, p.Diff.StableKeys)
	}
	return true
}

// rejectInputs fails an entry whose inputs its provider does not accept; every failure is reported.
func (r *Run) rejectInputs(e *entry, failures []CheckFailure) {
	for _, f := range failures {
		if f.Property == "" {
			r.diagnose("error", e.URN, "%s resource '%s' has a problem: %s", e.New.Type, snapshot.NameOf(e.URN), f.Reason)
			continue
		}
		r.diagnose("error", e.URN, "%s resource '%s': property %s is not valid: %s", e.New.Type, snapshot.NameOf(e.URN),
			f.Property,
			f.Reason)
	}
	r.bail(e, "the inputs of "+string(e.URN)+" are not valid")
}
