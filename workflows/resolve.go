package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// resolve takes a person's answer about a create whose outcome is not known; answerable has accepted it.
func (r *run) resolve(_ workflow.Context, answer engine.Resolved) error {
	r.resolutions = append(r.resolutions, answer)
	return nil
}

// answerable refuses an answer that nothing waits for, so that whoever gives it learns of a typing error.
func (r *run) answerable(_ workflow.Context, answer engine.Resolved) error {
	if r.core == nil {
		return refusal(deployments.Errorf(deployments.CodeUnavailable, "%s has not loaded its state yet; try again",
			r.in.Update))
	}
	waiting := r.core.Progress().Waiting
	switch {
	case !slices.Contains(waiting, answer.URN) && len(waiting) == 0:
		return refusal(deployments.Errorf(deployments.CodeConflict,
			"%s does not wait for an answer, about %s or anything else",
			r.in.Update, answer.URN))
	case !slices.Contains(waiting, answer.URN):
		names := make([]string, len(waiting))
		for i, u := range waiting {
			names[i] = string(u)
		}
		return refusal(deployments.Errorf(deployments.CodeConflict,
			"%s does not wait for an answer about %s; it waits for one about %s",
			r.in.Update, answer.URN, strings.Join(names, ", ")))
	case slices.ContainsFunc(r.resolutions, func(a engine.Resolved) bool { return a.URN == answer.URN }):
		return refusal(deployments.Errorf(deployments.CodeConflict, "%s has an answer about %s already", r.in.Update,
			answer.URN))
	}
	return nil
}
