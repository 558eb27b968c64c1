package worker

import (
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

func TestARunIsAChildOfItsUpdate(t *testing.T) {
	u := deployments.UpdateName{StackName: deployments.StackName{Organization: "o", Project: "p", Stack: "s"},
		Version: "1"}
	run := func(workflow.Context, deployments.RunInput) error { return nil }
	update := func(ctx workflow.Context, _ deployments.UpdateInput) error {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: deployments.RunWorkflowID(u)})
		return workflow.ExecuteChildWorkflow(ctx, deployments.WorkflowRun, deployments.RunInput{Update: u}).Get(ctx, nil)
	}
	for _, c := range []struct {
		kind, id string
		input    any
		refused  bool
	}{
		{deployments.WorkflowRun, deployments.RunWorkflowID(u), deployments.RunInput{Update: u}, true},
		{deployments.WorkflowUpdate, deployments.UpdateWorkflowID(u), deployments.UpdateInput{Update: u}, false},
	} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.SetTestTimeout(waittest.Patience)
		env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: waittest.Patience,
			Interceptors: []interceptor.WorkerInterceptor{&workflowNames{}}})
		env.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: deployments.WorkflowRun})
		env.RegisterWorkflowWithOptions(update, workflow.RegisterOptions{Name: deployments.WorkflowUpdate})
		env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: c.id})
		env.ExecuteWorkflow(c.kind, c.input)
		err := env.GetWorkflowError()
		if refused := err != nil && strings.Contains(err.Error(), "was not started by"); refused != c.refused ||
			err != nil && !refused {
			t.Errorf("%s begins: %v", c.id, err)
		}
	}
}
