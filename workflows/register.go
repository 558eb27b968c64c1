package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// Settings change how workflows behave, for tests.
type Settings struct {
	// ForceContinue is the RunInput's.
	ForceContinue int
}

// Workflows are the workflows with their settings.
type Workflows struct {
	settings Settings
	open     func(opening) (core, error)
}

// core is what a Run needs of the engine.
type core interface {
	Handle(engine.Event)
	Ready() []engine.Command
	Deltas() []engine.Delta
	Result() (engine.Result, bool)
	InFlight() int
	Progress() engine.Progress
	Suspend() (json.RawMessage, error)
}

// opening is what a core begins with.
type opening struct {
	goal      engine.Goal
	base      []engine.State
	pending   []engine.PendingOperation
	suspended json.RawMessage // nil at the start
}

// New gives the workflows.
func New(s Settings) *Workflows { return &Workflows{settings: s, open: openEngine} }

func openEngine(o opening) (core, error) {
	if o.suspended == nil {
		return engine.New(o.goal, o.base, o.pending), nil
	}
	return engine.Resume(o.goal, o.base, o.pending, o.suspended)
}

// Register registers the workflows under their names. Updates stay on the worker version they started on; a Run and a
// Stack move to the current one when they continue as new.
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
}
