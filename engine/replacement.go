package engine

import (
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// replace puts a new resource in the place of the old one: it is created before the old one is deleted, unless the
// program or the provider wants the old one deleted first. It reports whether the entry left its stage.
//
// The program's deleteBeforeReplace decides in both directions; the provider's Diff decides if the option is not set.
// An external resource is not deleted at all, and one that is pending its replacement has been deleted, so for both
// only the create is left.
func (r *Run) replace(e *entry, old *State) bool {
	e.Kind = StepCreateReplacement
	if r.departs(e) {
		return true
	}
	before := e.Plan.Diff.DeleteBeforeReplace
	if e.Reg.DeleteBeforeReplace != nil {
		before = *e.Reg.DeleteBeforeReplace
	}
	before = before && !old.External && !old.PendingReplacement
	var candidates []State
	if before {
		var wait bool
		// Before the refusals: replace runs again after the wait, and a preview would report them twice.
		if candidates, wait = r.candidates(e); wait {
			return false
		}
	}
	if r.refuseProtected(e, old) {
		return true
	}
	// As in Pulumi. Otherwise the next update would import the old id in the place of the new resource.
	if e.Reg.ImportID != "" && !old.PendingReplacement {
		const message = "%s still says that it is imported, so it cannot be replaced%s; remove the import option"
		if !r.goal.DryRun {
			r.reject(e, message, e.URN, replacing(e.Plan.Diff))
			return true
		}
		r.diagnose("warning", e.URN, message, e.URN, replacing(e.Plan.Diff))
	}
	switch {
	case !before:
		r.enqueue(e, false)
	// A replica answers in a preview that something is replaced: its reply is compared when this run replies.
	case r.goal.DryRun || !r.contradicts(e):
		r.startCascade(e, old, candidates)
	}
	return true
}

// replacing names the properties whose change replaces a resource; "" if it is no property.
func replacing(d Diff) string {
	keys := slices.Sorted(slices.Values(d.ReplaceKeys))
	if len(keys) == 0 {
		return ""
	}
	return " because of " + strings.Join(slices.Compact(keys), ", ")
}

// refuseProtected fails an entry that would replace a protected resource. A preview reports it and goes on. It reports
// whether the entry failed. The protection ends with the update that removes the option, so the old and the new state
// must agree.
//
// The preview shows the replacement all the same, so that a user sees all that the update would do.
func (r *Run) refuseProtected(e *entry, old *State) bool {
	if !old.Protect || !e.New.Protect || r.goal.IgnoreProtect {
		return false
	}
	const message = "%s is protected and would have to be replaced; remove its protect option and update again to " +
		"replace it"
	if !r.goal.DryRun {
		r.reject(e, message, e.URN)
		return true
	}
	r.diagnose("error", e.URN, message, e.URN)
	r.noteError("a protected resource would be replaced")
	return false
}

// waitsFor returns an entry that was registered earlier and that may still change this one's decision, nil when there
// is none: a stored resource that the entry's old state depends on, however far, may turn out to be deleted before it
// is replaced.
//
// It follows the references of stored states, not those of goals: a cascade takes what depended on the old resource. An
// entry of which everything earlier is done waits for nothing, which spares long runs the search. No two entries wait
// for each other, because each waits only for an earlier one.
func (r *Run) waitsFor(e *entry) (on *entry) {
	if e.Old == "" || r.firstOpen() >= e.Order {
		return nil
	}
	seen := map[urn.URN]bool{}
	var depends func(k Key) bool
	depends = func(k Key) bool {
		state := r.snap.Get(k)
		if state == nil {
			return false
		}
		for _, u := range state.References() {
			u = r.current(u)
			if seen[u] {
				continue
			}
			seen[u] = true
			if other := r.byURN[u]; other != nil && other.Order < e.Order && !other.committed() {
				on = other
				return true
			}
			if next, ok := r.snap.LiveKey(u); ok && depends(next) {
				return true
			}
		}
		return false
	}
	depends(e.Old)
	return on
}
