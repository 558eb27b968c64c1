package workflows

import (
	"context"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// Temporal gives the handlers of a workflow contexts of their own, without its names.
func TestAHandlerOfAStackCallsActivitiesByTheNamesOfTheStack(t *testing.T) {
	for _, former := range []bool{false, true} {
		read := map[string]int{}
		env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
		env.SetTestTimeout(waittest.Patience)
		for _, name := range []string{"Head", "ReadHead"} {
			env.RegisterActivityWithOptions(func(context.Context, deployments.StackName) (deployments.Head, error) {
				read[name]++
				return deployments.Head{}, nil
			}, activity.RegisterOptions{Name: name})
		}
		env.ExecuteWorkflow(func(ctx workflow.Context) error {
			s := &stack{former: former}
			return s.readHead(s.handling(ctx))
		})
		err := env.GetWorkflowError()
		want := map[bool]string{false: "ReadHead", true: "Head"}[former]
		if err != nil || len(read) != 1 || read[want] != 1 {
			t.Errorf("former names %t: called are %v, %v", former, read, err)
		}
	}
}
