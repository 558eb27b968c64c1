package engine

import (
	"fmt"
	"slices"
	"strings"
)

// Hooks are functions of the program that run around the steps of a resource. They go through these places:
//
//	issueSteps    a step that has a slot first runs its before hooks; send issues the step itself
//	stepFinished  a step that failed asks its error hooks; if one wants it, the step is issued again
//	complete      what the step did is recorded; then its after hooks run, and only then it ends
//
// The step keeps its slot meanwhile. One hook of a step runs at a time. A component and a deletion that calls no
// provider have an operation only if they have hooks: it is Silent. The after hooks of a component run when its outputs
// are registered, because only then its children are there.
//
// A hook runs at least once: if its worker is lost, the driver runs it again when the program has started again.

// maxErrorRetries is how many failures of one step error hooks may answer, as in Pulumi's engine.
const maxErrorRetries = 100

// longestReason bounds each error that error hooks get, in bytes: a command with all of them must fit a message.
const longestReason = 4 << 10

// hookPoints are the points around each kind of step that has hooks.
var hookPoints = map[StepKind]struct{ before, after HookPoint }{
	StepCreate:            {BeforeCreate, AfterCreate},
	StepCreateReplacement: {BeforeCreate, AfterCreate},
	StepUpdate:            {BeforeUpdate, AfterUpdate},
	StepDelete:            {BeforeDelete, AfterDelete},
	StepDeleteReplaced:    {BeforeDelete, AfterDelete},
}

// hooking is a hook that runs for a step.
type hooking struct {
	Point HookPoint
	Nth   int  // among the hooks of the point
	Retry bool `json:",omitempty"` // an error hook wants the step to be repeated
	// Failed is how the step ended, about which error hooks are asked.
	Failed *StepFinished `json:",omitempty"`
}

// hooks returns the names of the step's hooks at a point. Those of a deletion are stored with what it deletes.
func (s *Step) hooks(p HookPoint) []string {
	state := s.New
	if state == nil {
		state = s.Old
	}
	return state.Hooks[p]
}

// hooked reports that hooks run before or after the step.
func (s *Step) hooked() bool {
	at, ok := hookPoints[s.Kind]
	return ok && len(s.hooks(at.before))+len(s.hooks(at.after)) > 0
}

// runHooks runs the hooks of an operation, which has a slot, at a point; it reports whether there are any.
func (r *Run) runHooks(op *operation, p HookPoint) bool {
	if p == "" || len(op.Step.hooks(p)) == 0 {
		return false
	}
	op.Hooks = &hooking{Point: p}
	r.runHook(op)
	return true
}

// runHook runs the next hook of an operation. Without a program it fails at once.
func (r *Run) runHook(op *operation) {
	h, step := op.Hooks, op.Step
	if r.Exit != nil || !r.hasProgram() {
		r.hookFinished(HookFinished{Op: op.Op, Point: h.Point, Nth: h.Nth,
			Error: "the program has ended, and only a program that registers a hook of this name can run it"})
		return
	}
	r.ready.Start = append(r.ready.Start, Hook{
		Op: op.Op, Point: h.Point, Nth: h.Nth, Name: step.hooks(h.Point)[h.Nth], Kind: step.Kind, URN: op.URN,
		Type: step.Type, Old: step.Old, New: step.New, Errors: op.Errors, Preview: r.goal.DryRun,
	})
}

// hookFinished goes on with the next hook of the point, or with the step.
func (r *Run) hookFinished(ev HookFinished) {
	op := r.Ops[ev.Op]
	if op == nil || op.Hooks == nil || op.Hooks.Point != ev.Point || op.Hooks.Nth != ev.Nth {
		return
	}
	h := op.Hooks
	name := op.Step.hooks(h.Point)[h.Nth]
	if ev.Warning != "" {
		r.diagnose("warning", op.URN, "%s hook %q failed: %s", h.Point, name, ev.Warning)
	}
	h.Retry = h.Retry || ev.Retry
	if h.Nth++; ev.Error == "" && h.Nth < len(op.Step.hooks(h.Point)) {
		r.runHook(op)
		return
	}
	op.Hooks = nil
	switch h.Point {
	case OnError:
		r.errorHooksEnded(op, h, hookError("error", name, ev.Error))
	case hookPoints[op.Step.Kind].before:
		r.beforeHooksEnded(op, hookError("before", name, ev.Error))
	default:
		r.afterHooksEnded(op, hookError("after", name, ev.Error))
	}
}

// hookError is the message about a hook that failed; empty if it did not.
func hookError(when, name, reason string) string {
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("%s hook %q failed: %s", when, name, reason)
}

// beforeHooksEnded issues the step, or ends it without effect.
func (r *Run) beforeHooksEnded(op *operation, failed string) {
	switch {
	case failed != "":
		r.release(op)
		r.complete(op, StepFinished{Op: op.Op, Outcome: OutcomeFailed, Error: failed})
	case r.Stopped:
		r.release(op)
		r.complete(op, StepFinished{Op: op.Op, Outcome: OutcomeCancelled})
	default:
		r.send(op)
	}
}

// runAfterHooks runs the after hooks of a step whose effect is recorded; it reports whether there are any. The
// operation takes a slot again until they have ended.
func (r *Run) runAfterHooks(op *operation) bool {
	p := hookPoints[op.Step.Kind].after
	if p == "" || len(op.Step.hooks(p)) == 0 {
		return false
	}
	r.Ops[op.Op] = op
	r.Slots = append(r.Slots, op.Op)
	return r.runHooks(op, p)
}

// afterHooksEnded ends a step. A hook that failed makes the update fail; what the step did stays recorded.
func (r *Run) afterHooksEnded(op *operation, failed string) {
	r.release(op)
	switch op.For {
	case forGoal:
		r.succeed(op.Entry, op.Op)
	case forDeletion:
		d := r.deletionOf[op.Key]
		if d == nil { // its epoch is over
			d = &deletion{Key: op.Key, URN: op.URN, Kind: op.Step.Kind}
		}
		r.deletionEnded(d, op)
	case forOutputs:
		if done := r.mark(op.URN).Done; done != nil {
			done.Hooked = true
		}
		if op.Reply.Epoch == r.Epoch {
			r.ready.Replies = append(r.ready.Replies, *op.Reply)
		}
	default:
	}
	if failed != "" {
		r.diagnose("error", op.URN, "%s", failed)
		r.fail(failed)
	}
}

// deletionEnded shows that a deletion whose effect is recorded has ended, and lets those start that waited for it.
func (r *Run) deletionEnded(d *deletion, op *operation) {
	r.emit(Emit{
		Kind: EmitOutputs, Op: op.Op, Step: d.Kind, URN: d.URN, Type: op.Step.Type, Old: op.Step.Old,
	})
	r.unblock(d)
}

// runComponentHooks runs the after hooks of a component whose outputs are registered; it reports whether there are any.
// The reply follows them. They run once, also if the program that starts again registers the outputs again.
func (r *Run) runComponentHooks(e *entry, reply Reply) bool {
	done := r.marked(e.URN).Done
	if e.New.Custom || r.Stopped || done == nil || done.Hooked || r.stepOf(e.URN) != nil {
		return false
	}
	next := e.New
	step := &Step{Op: r.newOp(), Kind: e.Kind, URN: e.URN, Type: e.New.Type, New: &next, Preview: r.goal.DryRun}
	if was := r.snap.Was(e.Old); was != nil {
		old := *was
		step.Old = &old
	}
	return r.runAfterHooks(&operation{
		Op: step.Op, URN: e.URN, Step: step, Entry: e, For: forOutputs, Silent: true, Reply: &reply,
	})
}

// askErrorHooks asks the error hooks of a step that failed whether it is to be repeated; it reports whether there are
// any. A create that made a resource is never repeated: it would make another one.
func (r *Run) askErrorHooks(op *operation, ev StepFinished) bool {
	asks := ev.Outcome == OutcomeFailed && len(ev.Failures) == 0 ||
		ev.Outcome == OutcomePartial && op.Step.Kind == StepUpdate
	_, hooked := hookPoints[op.Step.Kind]
	if !asks || !hooked || op.Silent || r.Stopped || len(op.Step.hooks(OnError)) == 0 {
		return false
	}
	reason := ev.Error
	if ev.Outcome == OutcomePartial {
		reason = strings.Join(ev.InitErrors, "; ")
	}
	if len(reason) > longestReason {
		reason = strings.ToValidUTF8(reason[:longestReason], "") + "…"
	}
	op.Errors = append([]string{reason}, op.Errors...)
	if len(op.Errors) >= maxErrorRetries {
		r.diagnose("warning", op.URN, "the step is not repeated any more: error hooks have asked for it %d times",
			maxErrorRetries)
		return false
	}
	op.Hooks = &hooking{Point: OnError, Failed: &ev}
	r.runHook(op)
	return true
}

// errorHooksEnded repeats the step or lets it fail. A repetition keeps the operation and the seed, so that a create
// asks for the same name.
func (r *Run) errorHooksEnded(op *operation, h *hooking, failed string) {
	ev := *h.Failed
	switch {
	case failed != "" && ev.Outcome == OutcomeFailed:
		ev.Error += "; " + failed
	case failed != "":
		r.diagnose("error", op.URN, "%s", failed)
	case h.Retry && !r.Stopped:
		r.diagnose("warning", op.URN, "the %s is repeated, as an error hook asks: %d of at most %d times",
			operationOf(op.Step.Kind), len(op.Errors), maxErrorRetries)
		op.Step.Retries++
		op.inquire(aboutStep)
		r.ready.Start = append(r.ready.Start, *op.Step)
		return
	}
	r.release(op)
	r.complete(op, ev)
}

// operationOf returns the name of the provider's call that a step makes.
func operationOf(kind StepKind) string {
	call, _, _ := strings.Cut(string(kind), "-")
	return call
}

// abandonHooks ends the calls of hooks whose program has ended.
func (r *Run) abandonHooks() {
	for _, n := range r.Slots {
		if r.Ops[n].Hooks != nil {
			r.ready.Start = append(r.ready.Start, Abandon{Op: n})
		}
	}
}

// refuseDeleteHooks refuses an update that deletes and runs no program, if a state has hooks that run at its deletion.
// It reports whether it did.
func (r *Run) refuseDeleteHooks(base []State) bool {
	if r.goal.Kind != KindDestroy || r.hasProgram() {
		return false
	}
	found := false
	for _, s := range base {
		names := slices.Concat(s.Hooks[BeforeDelete], s.Hooks[AfterDelete])
		if len(names) == 0 {
			continue
		}
		found = true
		r.diagnose("error", s.URN, "%s has hooks that run when it is deleted (%s), and this update does not run the "+
			"program, whose functions they are", s.URN, strings.Join(names, ", "))
	}
	if found {
		r.noteError("resources have hooks that run when they are deleted; run `deployctl destroy --run-program`")
	}
	return found
}

// programWaits closes the registrations of a program that stays alive for its hooks. The reply comes when the update
// has nothing left to do; the program then exits.
func (r *Run) programWaits(ev ProgramWaits) {
	if ev.Epoch != r.Epoch || r.bySeq[ev.Seq] {
		return
	}
	r.bySeq[ev.Seq] = true
	r.Seen = append(r.Seen, ev.Seq)
	r.Waits = &ev
}

// lingers reports that the program waits, or has been told to exit and has not done so yet.
func (r *Run) lingers() bool { return r.Waits != nil && r.Exit == nil }

// dismiss tells a program that waits to exit.
func (r *Run) dismiss() {
	if r.lingers() {
		r.ready.Replies = append(r.ready.Replies, Reply{Epoch: r.Waits.Epoch, Seq: r.Waits.Seq, Result: ResultSuccess})
	}
}
