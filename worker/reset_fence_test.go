package worker

import (
	"context"
	"errors"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/waittest"
)

// The run of the SDK's test environment.
const testRun = "default-test-run-id"

func TestAnActivityThatAResetRepeatsIsRejected(t *testing.T) {
	for name, c := range map[string]struct {
		beganAs string
		refused bool
	}{
		"of its own run":           {testRun, false},
		"of a run that was reset":  {"another-run", true},
		"of a stack or a schedule": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.SetTestTimeout(waittest.Patience)
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&resetFence{}}})
			if c.beganAs != "" {
				run, err := converter.GetDefaultDataConverter().ToPayload(c.beganAs)
				must(t, err)
				env.SetHeader(&commonpb.Header{Fields: map[string]*commonpb.Payload{beganAs: run}})
			}
			done := 0
			env.RegisterActivityWithOptions(func(context.Context) error { done++; return nil },
				activity.RegisterOptions{Name: "Step"})
			_, err := env.ExecuteActivity("Step")
			var failure *temporal.ApplicationError
			refused := errors.As(err, &failure) && failure.Type() == deployments.ErrorReset && failure.NonRetryable()
			if refused != c.refused || (done == 0) != c.refused || err != nil && !refused {
				t.Errorf("it was done %d times: %v", done, err)
			}
		})
	}
}

// header is an activity interceptor that keeps the header.
type header struct {
	interceptor.WorkerInterceptorBase
	seen *bool
}

func (h *header) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &keptHeader{interceptor.ActivityInboundInterceptorBase{Next: next}, h.seen}
}

type keptHeader struct {
	interceptor.ActivityInboundInterceptorBase
	seen *bool
}

func (h *keptHeader) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	*h.seen = interceptor.Header(ctx)[beganAs] != nil
	return h.Next.ExecuteActivity(ctx, in)
}

func TestActivitiesOfUpdatesCarryTheRunThatTheyAreOf(t *testing.T) {
	for _, c := range []struct {
		workflow string
		carries  bool
	}{{deployments.WorkflowRun, true}, {deployments.WorkflowUpdate, true}, {deployments.WorkflowStack, false}} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.SetTestTimeout(waittest.Patience)
		seen := false
		env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: waittest.Patience,
			Interceptors: []interceptor.WorkerInterceptor{&resetFence{}, &header{seen: &seen}}})
		env.RegisterActivityWithOptions(func(context.Context) error { return nil },
			activity.RegisterOptions{Name: "Step"})
		env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
			workflow.GetInfo(ctx).OriginalRunID = testRun // which the test environment leaves out
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: ample})
			return workflow.ExecuteActivity(ctx, "Step").Get(ctx, nil)
		}, workflow.RegisterOptions{Name: c.workflow})
		env.ExecuteWorkflow(c.workflow)
		must(t, env.GetWorkflowError())
		if seen != c.carries {
			t.Errorf("an activity of %s carries it: %t", c.workflow, seen)
		}
	}
}
