package engine_test

import (
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/mutanttest"
)

// mutants must each be noticed by a transcript or a random run.
var mutants = []mutanttest.Mutant{
	{
		Name: "a program that failed has its resources deleted", File: "phases.go",
		Old: `if r.Stopped || r.Refusals > 0 || unmatched || (r.Exit != nil && r.Exit.Error != "") ||`,
		New: `if unmatched ||`,
	},
	{
		Name: "a request that was refused lets the update delete", File: "refused.go",
		Old: "r.Refusals++\n\tvar about", New: "var about",
	},
	{
		Name: "what could not be registered is deleted", File: "undeclared.go",
		Old: `(r.registered(s.URN) || r.wants(s.URN))`, New: `r.registered(s.URN)`,
	},
	{
		Name: "a copy stays in the way of a cascade", File: "cascade.go",
		Old: `if len(ahead) > 0 {`, New: `if false {`,
	},
	{
		Name: "a copy that something uses goes ahead of a cascade", File: "sweep.go",
		Old: `case all(sweeps):`, New: `case true:`,
	},
	{
		Name: "what may use a copy stays where it was when the copy moves", File: "record.go",
		Old: `if !must && (r.recorded(&state) || !uses(&state)) {`, New: `if !must || false && uses(&state) {`,
	},
	{
		Name: "what targets leave alone loses the copy that it may use", File: "targets.go",
		Old: `k.r.snap.Get(used).Delete && inBase`, New: `false && inBase`,
	},
	{
		Name: "an alias is claimed twice", File: "aliases.go",
		Old: `case name != e.URN && by != "" && by != e.URN:`, New: `case false:`,
	},
	{
		Name: "a target that names nothing is ignored", File: "phases.go",
		Old: `|| unmatched ||`, New: `|| unmatched && false ||`,
	},
	{
		Name: "a replaced resource is forgotten instead of deleted", File: "record.go",
		Old: `if e.replaces() && !old.PendingReplacement {`, New: `if false {`,
	},
	{
		Name: "deletions do not wait for what depends on them", File: "deletion.go",
		Old: `other.Blockers++`, New: `other.Blockers += 0`,
	},
	{
		Name: "a failed deletion lets go what it depends on", File: "deletion.go",
		Old: "if d != nil {\n\t\t\tr.failDeletion(d)", New: "if d != nil {\n\t\t\tr.unblock(d)",
	},
	{
		Name: "a protected resource is deleted", File: "deletion.go",
		Old: `if state.Protect && d.Kind == StepDelete && !r.goal.IgnoreProtect {`, New: `if false {`,
	},
	{
		Name: "an error that leaves the effect open is taken for a failure", File: "steps.go",
		Old: `!r.lookAfter(op, ev) && !r.reconcileEarlier(op, ev)`, New: `!r.reconcileEarlier(op, ev)`,
	},
	{
		Name: "what an error hook had repeated counts as half made", File: "hooks.go",
		Old: "\t\top.inquire(aboutStep)\n", New: "",
	},
	{
		Name: "an unknown outcome is taken for a failure and tried again", File: "steps.go",
		Old: "\t\tr.settleLost(op)\n", New: "\t\tr.ready.Start = append(r.ready.Start, *op.Step)\n",
	},
	{
		Name: "another start of the program repeats what runs", File: "registration.go",
		Old: `if op := r.stepOf(e.URN); op != nil {`, New: `if op := r.stepOf(e.URN); op != nil && op.For != forGoal {`,
	},
	{
		Name: "a create that will not be made again is not looked for", File: "steps.go",
		Old: `case op.Inquiry == aboutLost || op.Lost && op.Inquiry == aboutStep:`, New: `case false:`,
	},
	{
		Name: "a create that fails forgets the attempt that was lost before it", File: "steps.go",
		Old: `if !op.Lost || op.Step.Kind`, New: `if true || op.Step.Kind`,
	},
	{
		Name: "outputs of a program that failed take the place of the stack's", File: "outputs.go",
		Old: `!r.Stopped && r.FirstError == "" || had.Outputs.Empty()`, New: `had != nil`,
	},
	{
		Name: "an import of an earlier start of the program goes on beside the next one", File: "imports.go",
		Old: `if e.Epoch != r.Epoch {`, New: `if false {`,
	},
	{
		Name: "a resource outside the targets is deleted for another's replacement", File: "cascade.go",
		Old: `|| r.refuseUnselectedMember(e, group)`, New: ``,
	},
	{
		Name: "a replacement does not wait for what was registered before it", File: "cascade.go",
		Old: `case other != nil && other.Order < e.Order && other.Stage != stageDone,`, New: `case false,`,
	},
	{
		Name: "members of a cascade keep the plans that were made before it", File: "cascade.go",
		Old: "other.Plan, other.Old = nil, \"\"\n\tr.become(other, stageHeld, 0)", New: "",
	},
	{
		Name: "an entry that has ended still has an operation", File: "stages.go",
		Old: `e.Stage, e.Op, e.blockedOn = to, op, nil`, New: `e.Stage, e.Op, e.blockedOn = to, max(e.Op, op), nil`,
	},
	{
		Name: "a deletion that is over goes on blocking another", File: "deletion.go",
		Old: `if d.Blockers--; d.Blockers == 0 {`, New: `if d.Blockers == 1 {`,
	},
	{
		Name: "references keep the name from before an alias", File: "snapshot/snapshot.go",
		Old: `s.renames[d.From] = d.To`, New: ``,
	},
	{
		Name: "a resource that did not initialise is not repaired", File: "planning.go",
		Old: `|| len(old.InitErrors) > 0:`, New: `:`,
	},
	{
		Name: "a create that nobody could decide on is made again", File: "aliases.go",
		Old: `case r.marked(name).Undecided:`, New: `case false:`,
	},
	{
		Name: "another start of the program is told of what was deleted meanwhile", File: "registration.go",
		Old: `!live.PendingReplacement && r.deletionOf[k] == nil`, New: `true`,
	},
	{
		Name: "more steps run than may", File: "operations.go",
		Old: `len(r.Slots) >= r.slots(op)`, New: `len(r.Slots) > r.slots(op)`,
	},
	{
		Name: "a plan is answered before it is certain", File: "replies.go",
		Old: `if !certain || r.Entries[r.firstOpen()] != e {`, New: `if !certain {`,
	},
	{
		Name: "an answer to an earlier start of the program counts for this one", File: "replies.go",
		Old: `return a != nil && a.Epoch == e.Epoch && a.Seq == e.Seq`, New: `return a != nil`,
	},
	{
		Name: "what waits for a person is lost when the run is put away", File: "snapshot/stored.go",
		Old: `Pending: s.Pending(), Aliases`, New: `Aliases`,
	},
	{
		Name: "a target comes to depend on what still depends on it", File: "targets.go",
		Old: `if !r.restricted() || e.Old == "" {`, New: `if true {`,
	},
	{
		Name: "a destroy with a program creates", File: "run_program.go",
		Old: `case leftOut || !stored:`, New: `case leftOut:`,
	},
	{
		Name: "a refresh with a program reads twice", File: "refresh.go",
		Old: `case r.refreshesAlong() && r.byURN[r.current(s.URN)] != nil:`, New: `case false:`,
	},
	{
		Name: "what an excluded resource needs is deleted", File: "targets.go",
		Old: `case r.excludes():
		return r.withoutNeededByExcluded(group)`, New: `case r.excludes():
		return group`,
	},
	{
		Name: "what is deleted with a replaced resource is deleted by a call", File: "deletion.go",
		Old: `|| r.goesAlong(s)`, New: `|| false`,
	},
	{
		Name: "what is taken over refers to what is gone", File: "settle.go",
		Old: `u != "" && r.snap.Live(r.current(u)) == nil`, New: `false`,
	},
	{
		Name: "a resource keeps an id that it should lose when a program starts again", File: "planning.go",
		Old: `e.Forced != nil || p.Diff.Change == ChangeReplace:`,
		New: `e.Forced != nil || p.Diff.Change == ChangeReplace && r.Epoch == 1:`,
	},
	{
		Name: "what the program of an earlier start has said is believed of the next one", File: "marks.go",
		Old: `m.inEpoch = inEpoch{}`, New: ``,
	},
	{
		Name: "a suspended run forgets how often a resource was created, so that a seed is used again", File: "marks.go",
		Old: `put(s.Made, u, m.Creates, m.Creates > 0)`, New: ``,
	},
}

func TestMutantsAreCaught(t *testing.T) {
	mutanttest.Play(t, mutants, []string{"."}, []string{"./modeltest"}) // those of the model take longer
}
