package worker

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// resetFence rejects activities of an update that a reset would repeat. A reset starts a new run with part of the
// history of another one: the server schedules again what was in flight there, and the workflow schedules again what
// came later. Each activity carries the run in which its workflow began, and is rejected in any other.
type resetFence struct {
	interceptor.WorkerInterceptorBase
}

// beganAs is the header with the run in which a workflow began.
const beganAs = "deployctl-began-as"

// fenced are the workflows whose activities must not be repeated. Those of a Stack and of a schedule may be.
var fenced = map[string]bool{deployments.WorkflowUpdate: true, deployments.WorkflowRun: true}

// InterceptWorkflow adds the run in which the workflow began to its activities.
func (*resetFence) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &fencedWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type fencedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
}

// Init wraps the workflow's outbound calls.
func (f *fencedWorkflow) Init(calls interceptor.WorkflowOutboundInterceptor) error {
	return f.Next.Init(&fencedCalls{interceptor.WorkflowOutboundInterceptorBase{Next: calls}})
}

type fencedCalls struct {
	interceptor.WorkflowOutboundInterceptorBase
}

// ExecuteActivity schedules an activity.
func (f *fencedCalls) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	info := workflow.GetInfo(ctx)
	if header := interceptor.WorkflowHeader(ctx); header != nil && fenced[info.WorkflowType.Name] &&
		info.OriginalRunID != "" {
		if run, err := converter.GetDefaultDataConverter().ToPayload(info.OriginalRunID); err == nil {
			header[beganAs] = run
		}
	}
	return f.Next.ExecuteActivity(ctx, name, args...)
}

// InterceptActivity rejects activities that a reset repeats.
func (*resetFence) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &fencedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type fencedActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity runs an activity of the workflow's first run.
func (f *fencedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	began := ""
	if header := interceptor.Header(ctx)[beganAs]; header != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(header, &began); err != nil {
			return nil, err
		}
	}
	if run := activity.GetInfo(ctx).WorkflowExecution.RunID; began != "" && began != run {
		return nil, temporal.NewNonRetryableApplicationError(deployments.ResetText, deployments.ErrorReset, nil)
	}
	return f.Next.ExecuteActivity(ctx, in)
}
