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

// resets has no activity of an update done again for a reset. A reset is a new run of a workflow with a part of the
// history of another one: the server hands out again what was under way there, and the workflow asks again for what
// came later. Each activity carries the run that its workflow began as, and is refused in any other.
type resets struct {
	interceptor.WorkerInterceptorBase
}

// beganAs is the header of the run that a workflow began as.
const beganAs = "deployctl-began-as"

// fenced are the workflows whose activities must not be done again. Those of a Stack and of a schedule may be.
var fenced = map[string]bool{deployments.WorkflowUpdate: true, deployments.WorkflowRun: true}

// InterceptWorkflow has the workflow's activities carry the run that it began as.
func (*resets) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &fencedWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type fencedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
}

// Init wraps what the workflow calls.
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

// InterceptActivity refuses what a reset does again.
func (*resets) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &fencedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type fencedActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity runs an activity of the run that asked for it first.
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
