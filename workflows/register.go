package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// Settings change how workflows behave, for tests and for recovery.
type Settings struct {
	// ForceContinue is the RunInput's.
	ForceContinue int
	// Opened, if not nil, is called with every Run; recovery uses it to replay one that was closed from outside.
	Opened func(*Replayed)
}

// Workflows are the workflows with their settings.
type Workflows struct{ settings Settings }

// New gives the workflows.
func New(s Settings) *Workflows { return &Workflows{settings: s} }

// Register registers the workflows under their names. Updates stay on the worker version they started on, their Runs
// until they continue as new; a Stack and the run of a schedule move to the current one at once.
func (w *Workflows) Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(w.Stack, workflow.RegisterOptions{
		Name: deployments.WorkflowStack, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
	r.RegisterWorkflowWithOptions(w.Update, workflow.RegisterOptions{
		Name: deployments.WorkflowUpdate, VersioningBehavior: workflow.VersioningBehaviorPinned,
	})
	r.RegisterWorkflowWithOptions(w.Run, workflow.RegisterOptions{
		Name: deployments.WorkflowRun, VersioningBehavior: workflow.VersioningBehaviorPinned,
	})
	r.RegisterWorkflowWithOptions(w.Scheduled, workflow.RegisterOptions{
		Name: deployments.WorkflowScheduled, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
}
