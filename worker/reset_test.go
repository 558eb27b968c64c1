package worker

import (
	"context"
	"errors"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// The run of the SDK's test environment.
const testRun = "default-test-run-id"

func TestAnActivityThatAResetHandsOutAgainIsRefused(t *testing.T) {
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
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&resets{}}})
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
		seen := false
		env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&resets{},
			&header{seen: &seen}}})
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

// past is a Temporal server that keeps histories by run.
type past struct {
	frontend
	runs   map[string][]*historypb.HistoryEvent
	latest string
}

func (p *past) GetWorkflowExecutionHistory(
	_ context.Context, r *workflowservice.GetWorkflowExecutionHistoryRequest,
) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	run := r.GetExecution().GetRunId()
	if run == "" {
		run = p.latest
	}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: p.runs[run]}}, nil
}

func TestRecoveryReadsTheRunThatHasDoneEverything(t *testing.T) {
	event := func(kind enums.EventType) *historypb.HistoryEvent { return &historypb.HistoryEvent{EventType: kind} }
	reset := func(base string) *historypb.HistoryEvent {
		e := event(enums.EVENT_TYPE_WORKFLOW_TASK_FAILED)
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{
			WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{
				Cause: enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW, BaseRunId: base,
			},
		}
		return e
	}
	next := func(run string) *historypb.HistoryEvent {
		e := event(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW)
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
			WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{
				NewExecutionRunId: run},
		}
		return e
	}
	begin, end := event(enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED),
		event(enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED)
	for name, runs := range map[string]map[string][]*historypb.HistoryEvent{
		"which was not reset": {"latest": {begin, begin, end}},
		"which was reset":     {"latest": {begin, reset("first")}, "first": {begin, begin, end}},
		"which was reset twice": {"latest": {begin, reset("first"), reset("again")},
			"again": {begin, reset("first")}, "first": {begin, begin, end}},
		"of which an earlier run was reset": {"latest": {begin, reset("first")}, "first": {begin, next("second")},
			"second": {begin, begin, end}},
		"of which the second run was reset": {"latest": {begin, reset("second")}, "first": {begin, next("second")},
			"second": {begin, begin, end}},
	} {
		t.Run(name, func(t *testing.T) {
			connection := connectionTo(t, &past{runs: runs, latest: "latest"})
			events, err := connection.historyOf(t.Context(), "run/o/p/s/1")
			must(t, err)
			if len(events) != 3 || events[2].GetEventType() != end.GetEventType() {
				t.Errorf("it reads %v", events)
			}
		})
	}
}
