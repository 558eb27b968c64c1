package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// wasReset is the error of a run that a reset has made; nil for others. Such a run knows only a part of what was
// done, so it neither goes on nor ends with a result: its stack recovers the update from the history of the run that
// was reset.
func wasReset(ctx workflow.Context) error {
	info := workflow.GetInfo(ctx)
	if info.OriginalRunID == "" || info.OriginalRunID == info.WorkflowExecution.RunID {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(deployments.ResetText, deployments.ErrorReset, nil)
}

// overtaken reports that the run is to end now: it was reset, and has been through the history that it was given.
// That is the first task of its own, so nothing that comes after is ever replayed.
func overtaken(ctx workflow.Context) bool {
	return !workflow.IsReplaying(ctx) && wasReset(ctx) != nil
}
