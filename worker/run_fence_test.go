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
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// The run of the SDK's test environment.
const testRun = "default-test-run-id"

func TestAnActivityIsOfTheRunThatHasScheduledIt(t *testing.T) {
	const workflow = "default-test-workflow-id"
	fence := &runFence{data: converterOf(t, "ours", "")}
	of := func(workflow, activity, run string) *commonpb.Payload {
		payload, err := fence.at(workflow, activity).ToPayload(ofRun(run))
		must(t, err)
		return payload
	}
	plain, err := converter.GetDefaultDataConverter().ToPayload(testRun)
	must(t, err)
	for name, c := range map[string]struct {
		activity string
		header   *commonpb.Payload
		refused  string // the type of the error; empty: it runs
	}{
		"of its own run":                  {"Step", of(workflow, "Step", testRun), ""},
		"of a run that was reset":         {"Step", of(workflow, "Step", "another-run"), deployments.ErrorReset},
		"of no run":                       {"Step", nil, string(deployments.CodeForbidden)},
		"with a run that is not sealed":   {"Step", plain, string(deployments.CodeForbidden)},
		"with the run of another one":     {"Step", of(workflow, "Save", testRun), string(deployments.CodeForbidden)},
		"with that of another workflow":   {"Step", of("other", "Step", testRun), string(deployments.CodeForbidden)},
		"of a stack, which asks itself":   {deployments.ActivityRecoverUpdate, nil, ""},
		"of a stack, whatever it carries": {deployments.ActivityReadHead, plain, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.SetTestTimeout(waittest.Patience)
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{fence}})
			if c.header != nil {
				env.SetHeader(&commonpb.Header{Fields: map[string]*commonpb.Payload{beganAs: c.header}})
			}
			done := 0
			env.RegisterActivityWithOptions(func(context.Context) error { done++; return nil },
				activity.RegisterOptions{Name: c.activity})
			_, err := env.ExecuteActivity(c.activity)
			var failure *temporal.ApplicationError
			refused := ""
			if errors.As(err, &failure) && failure.NonRetryable() {
				refused = failure.Type()
			}
			if refused != c.refused || (done == 0) != (c.refused != "") || err != nil && refused == "" {
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
		activity string
		carries  bool
	}{{deployments.ActivityStep, true}, {deployments.ActivityCommitUpdate, true}, {deployments.ActivityReadHead, false}} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.SetTestTimeout(waittest.Patience)
		seen := false
		env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: waittest.Patience,
			Interceptors: []interceptor.WorkerInterceptor{&runFence{data: converterOf(t, "ours", "")}, &header{seen: &seen}}})
		env.RegisterActivityWithOptions(func(context.Context) error { return nil },
			activity.RegisterOptions{Name: c.activity})
		env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
			workflow.GetInfo(ctx).OriginalRunID = testRun // which the test environment leaves out
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: ample})
			return workflow.ExecuteActivity(ctx, c.activity).Get(ctx, nil)
		}, workflow.RegisterOptions{Name: deployments.WorkflowRun})
		env.ExecuteWorkflow(deployments.WorkflowRun)
		must(t, env.GetWorkflowError())
		if seen != c.carries {
			t.Errorf("%s carries it: %t", c.activity, seen)
		}
	}
}
