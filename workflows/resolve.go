package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// acceptResolution queues a person's resolution of an undecidable create; validateResolution has accepted it.
func (r *run) acceptResolution(_ workflow.Context, resolution engine.Resolved) error {
	r.resolutions = append(r.resolutions, resolution)
	return nil
}

// validateResolution rejects a resolution that nothing waits for, so that a mistyped URN is reported.
func (r *run) validateResolution(_ workflow.Context, resolution engine.Resolved) error {
	if r.core == nil {
		return clientError(deployments.Errorf(deployments.CodeUnavailable, "%s has not loaded its state yet; try again",
			r.in.Update))
	}
	waiting := r.core.Progress().Waiting
	switch {
	case !slices.Contains(waiting, resolution.URN) && len(waiting) == 0:
		return clientError(deployments.Errorf(deployments.CodeConflict,
			"%s does not wait for an answer, about %s or anything else",
			r.in.Update, resolution.URN))
	case !slices.Contains(waiting, resolution.URN):
		names := make([]string, len(waiting))
		for i, u := range waiting {
			names[i] = string(u)
		}
		return clientError(deployments.Errorf(deployments.CodeConflict,
			"%s does not wait for an answer about %s; it waits for one about %s",
			r.in.Update, resolution.URN, strings.Join(names, ", ")))
	case slices.ContainsFunc(r.resolutions, func(a engine.Resolved) bool { return a.URN == resolution.URN }):
		return clientError(deployments.Errorf(deployments.CodeConflict, "%s has an answer about %s already",
			r.in.Update,
			resolution.URN))
	}
	return nil
}
