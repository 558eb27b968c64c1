package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// Settings change how workflows behave, for tests and for recovery.
type Settings struct {
	// ForceContinue is passed to every Run; see RunInput.
	ForceContinue int
	// OnRun, if not nil, is called with every Run; recovery replays closed Runs with it.
	OnRun func(*Replayed)
}

// Workflows are the workflows with their settings.
type Workflows struct{ settings Settings }

// New returns the workflows.
func New(s Settings) *Workflows { return &Workflows{settings: s} }

// Register registers the workflows under their names. An Update stays on the worker version on which it started, a
// Run until it continues as new; a Stack, a Lease, a Deployment, a Notify and a run of a schedule move to the
// current version at once.
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
	r.RegisterWorkflowWithOptions(w.Lease, workflow.RegisterOptions{
		Name: deployments.WorkflowLease, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
	r.RegisterWorkflowWithOptions(w.Notify, workflow.RegisterOptions{
		Name: deployments.WorkflowNotify, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
	r.RegisterWorkflowWithOptions(w.Scheduled, workflow.RegisterOptions{
		Name: deployments.WorkflowScheduled, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
	r.RegisterWorkflowWithOptions(w.Deployment, workflow.RegisterOptions{
		Name: deployments.WorkflowDeployment, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
}
