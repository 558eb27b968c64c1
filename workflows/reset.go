package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// resetError returns the error of a workflow run that a reset made; nil for others. Such a run knows only part of what
// was done, so it neither continues nor ends with a result: its stack recovers the update from the history of the run
// that was reset.
func resetError(ctx workflow.Context) error {
	info := workflow.GetInfo(ctx)
	if info.OriginalRunID == "" || info.OriginalRunID == info.WorkflowExecution.RunID {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(deployments.ResetText, deployments.ErrorReset, nil)
}

// endsAfterReset reports whether the run must end now because a reset made it and it has replayed the history that it
// was given. That is in the first task of its own, so nothing after it is ever replayed.
func endsAfterReset(ctx workflow.Context) bool {
	return !workflow.IsReplaying(ctx) && resetError(ctx) != nil
}
