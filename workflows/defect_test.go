package workflows

import (
	"errors"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

func TestAPanicOfTheCoreEndsItsRunAndDoesNotHangIt(t *testing.T) {
	env := newEnvironment()
	var replayed *Replayed
	New(Settings{OnRun: func(r *Replayed) { replayed = r }}).Register(env)
	w := newWorld()
	env.RegisterActivity(w)
	p := &program{names: names(3)}
	p.at = map[int]func(*testsuite.TestWorkflowEnvironment){1: func(
		*testsuite.TestWorkflowEnvironment) {
		replayed.run.core = nil
	}}
	env.RegisterDelayedCallback(func() { p.begin(env) }, 0)
	env.ExecuteWorkflow(deployments.WorkflowRun, deployments.RunInput{Update: theUpdate, Worker: "first",
		Goal: engine.Goal{
			Kind: engine.KindUp, Version: 1, Organization: "organization", Project: "shop", Stack: "dev", Parallel: 10,
		}})
	var failure *temporal.ApplicationError
	err := env.GetWorkflowError()
	if !env.IsWorkflowCompleted() || !errors.As(err, &failure) || failure.Type() != string(deployments.CodeInternal) ||
		!strings.Contains(err.Error(), "failed internally") {
		t.Fatalf("it ends with %v", err)
	}
	if _, ended := OutputOf(err); ended {
		t.Error("it seems to have a result")
	}
	if replayed.Broken() == nil {
		t.Error("nobody is told that its core cannot be asked")
	}
}

func TestANondeterminismErrorDoesNotFailTheUpdate(t *testing.T) {
	env := newEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) (err error) {
		defer panicToError(ctx, &err)
		panic("[TMPRL1100] lookup failed")
	})
	if err := env.GetWorkflowError(); err == nil || strings.Contains(err.Error(), "failed internally") {
		t.Errorf("it ends with %v", err)
	}
}
