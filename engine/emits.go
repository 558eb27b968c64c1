package engine

import (
	"strings"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// emitStep shows a step of an entry. Old is the state that the entry started from, even if the step has just removed
// it: the snapshot keeps what it was. Both states are copies, because the entry goes on changing.
//
// Each step is shown twice, with the same operation number: as EmitPre when it begins, and as EmitOutputs or EmitFailed
// when it has ended.
func (r *Run) emitStep(kind EmitKind, op int, e *entry) {
	next := e.New
	em := Emit{Kind: kind, Op: op, Step: e.Kind, URN: e.URN, Type: e.New.Type, New: &next}
	if was := r.snap.Was(e.Old); was != nil {
		old := *was
		em.Old = &old
	}
	if e.Plan != nil {
		em.Diff = &e.Plan.Diff
		if e.Forced != nil {
			forced := *em.Diff
			forced.ReplaceKeys = e.Forced
			em.Diff = &forced
		}
	}
	r.emit(em)
}

// emitReplace shows the logical step that a create (or a read) and a delete are the halves of. Like Pulumi's display,
// it follows the create half. The summary counts this step and neither half, so a replacement counts once even if the
// delete of the old resource is left to a later update.
func (r *Run) emitReplace(e *entry, op int) {
	kind := e.Kind
	e.Kind = StepReplace
	r.emitStep(EmitPre, op, e)
	r.emitStep(EmitOutputs, op, e)
	r.count(StepReplace, e.URN)
	e.Kind = kind
}

// emitFailed ends the row of a step without outputs. The error itself is a diagnostic of its own.
func (r *Run) emitFailed(op *operation, message string) {
	r.emit(Emit{
		Kind: EmitFailed, Op: op.Op, Step: op.Step.Kind, URN: op.URN, Type: op.Step.Type, Old: op.Step.Old,
		New:     op.Step.New,
		Message: message,
	})
}

// emitCancelled shows that a step which had begun was cancelled, and why its row ends so.
func (r *Run) emitCancelled(op *operation, message string) {
	r.diagnose("warning", op.URN, "%s", message)
	r.emitFailed(op, message)
}

// CountRetained is what the deletion of a resource with retainOnDelete counts as: it leaves the state, and is not
// deleted. No step is of this kind.
const CountRetained StepKind = "retain"

// Compact returns the event without a new state that equals the old one. Most events of a large update are of resources
// that stay as they are.
func (e Emit) Compact() Emit {
	if e.Old != nil && e.New != nil && snapshot.Equal(*e.Old, *e.New) {
		e.New, e.Unchanged = nil, true
	}
	return e
}

// Whole returns the event with what Compact left out.
func (e Emit) Whole() Emit {
	if e.Unchanged {
		e.New, e.Unchanged = e.Old, false
	}
	return e
}

// count adds a step that succeeded to the summary, which is about what a person declared: a default provider is left
// out. As in Pulumi, a step whose resource exists but did not initialise has failed.
func (r *Run) count(kind StepKind, u urn.URN) {
	if isDefaultProvider(u) {
		return
	}
	r.Changes[string(kind)]++
}

// countRead counts an entry's step. A read counts only when it brings something new: another id or other outputs than
// those that are stored. Otherwise an update that changes nothing would report changes for every program that reads.
func (r *Run) countRead(e *entry) {
	if was := r.snap.Was(e.Old); e.Kind == StepRead && was != nil && was.ID == e.New.ID &&
		was.Outputs.Same(e.New.Outputs) {
		return
	}
	r.count(e.Kind, e.URN)
}

// isDefaultProvider reports whether a URN is of a provider that nobody declared: "default" here, and "default_" with a
// plugin version behind it where an SDK asks for one.
func isDefaultProvider(u urn.URN) bool {
	name := snapshot.NameOf(u)
	return snapshot.IsProvider(snapshot.TypeOf(u)) && (name == "default" || strings.HasPrefix(name, "default_"))
}
