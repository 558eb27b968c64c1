package engine

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// SavedPlan limits an update to the steps that an earlier preview has shown.
//
// It is the last of the checks that an update makes what was planned: the client compares a fresh preview with the plan
// before the update begins. A program or a provider may still decide otherwise in the update itself. A step that the
// plan does not have is then refused before it begins; reads and imports, which change nothing real, are not limited.
type SavedPlan struct {
	// Steps has create, update, replace or delete for each resource that changes; see PlannedKind.
	Steps map[urn.URN]StepKind `json:"steps"`
}

// PlannedKind returns the step of a saved plan that a step is part of; "" for one that changes nothing real.
func PlannedKind(kind StepKind) StepKind {
	switch kind {
	case StepCreate, StepUpdate, StepDelete, StepReplace:
		return kind
	case StepCreateReplacement, StepDeleteReplaced:
		return StepReplace
	default:
		return ""
	}
}

// unplanned returns why a step may not be made; "" if it may. A preview of a replacement or of an update may rest on
// values that were not known yet, so less may be done than was planned.
func (r *Run) unplanned(u urn.URN, kind StepKind) string {
	if r.goal.Plan == nil {
		return ""
	}
	now, planned := PlannedKind(kind), r.goal.Plan.Steps[u]
	switch {
	case now == "", now == planned, now == StepUpdate && planned == StepReplace:
		return ""
	case planned == "":
		return fmt.Sprintf("%s differs from the saved plan: the update would %s it, and the plan leaves it as it is", u, now)
	default:
		return fmt.Sprintf("%s differs from the saved plan: the update would %s it, and the plan says %s", u, now, planned)
	}
}

// departs fails an entry whose step the saved plan does not have. That ends every update, also one that goes on after
// errors: the plan does not hold. It reports whether it did.
func (r *Run) departs(e *entry) bool {
	why := r.unplanned(e.URN, e.Kind)
	if why == "" || e.Again != nil { // what a binding adds follows from what was planned
		return false
	}
	r.diagnose("error", e.URN, "%s", why)
	r.bailOut(e, why)
	return true
}

// refuseUnplanned reports each deletion of a group that the saved plan does not have; it reports whether there is one.
func (r *Run) refuseUnplanned(group []*deletion) (refused bool) {
	for _, d := range group {
		if why := r.unplanned(d.URN, d.Kind); why != "" {
			refused = true
			r.diagnose("error", d.URN, "%s", why)
			r.noteError(why)
		}
	}
	return refused
}
