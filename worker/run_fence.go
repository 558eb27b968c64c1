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

// runFence rejects activities of an update that are not of the workflow run which has scheduled them. A reset starts a
// new run with part of the history of another one: the server schedules again what was in flight there, and the
// workflow schedules again what came later. And anybody who can use the namespace can start a workflow under the same
// id, and have it schedule what was scheduled before. So each activity carries, sealed, the run in which its workflow
// began, and is rejected in any other.
type runFence struct {
	interceptor.WorkerInterceptorBase
	data converter.DataConverter
}

// at returns the converter of the headers of a workflow's activities of a type.
func (f *runFence) at(workflow, activity string) converter.DataConverter {
	return converter.WithDataConverterSerializationContext(f.data,
		converter.ActivitySerializationContext{WorkflowID: workflow, ActivityType: activity})
}

// ofRun is the content of the header.
type ofRun string

// beganAs is the header with the run in which a workflow began.
const beganAs = "deployctl-began-as"

// repeatable are the activities that may be repeated, those of stacks, schedules, deployments and webhooks: they ask
// themselves whether what they do is wanted. All others need the header.
var repeatable = map[string]bool{
	deployments.ActivityReadHead: true, deployments.ActivityTerminateRun: true, deployments.ActivityRecoverUpdate: true,
	deployments.ActivityAwaitWorkflow: true, deployments.ActivitySubmitUpdate: true,
	deployments.ActivityAwaitUpdate: true, deployments.ActivityReportDrift: true, deployments.ActivityRemoveStack: true,
	deployments.ActivityAwaitTurn: true, deployments.ActivityPrepareDeployment: true,
	deployments.ActivitySubmitDeployment: true, deployments.ActivityFollowDeployment: true,
	deployments.ActivityEndDeployment: true, deployments.ActivityRemoveDestroyedStack: true,
	deployments.ActivityDeliverEvent: true,
}

// InterceptWorkflow adds the run in which the workflow began to its activities.
func (f *runFence) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &fencedWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}, f}
}

type fencedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
	fence *runFence
}

// Init wraps the workflow's outbound calls.
func (f *fencedWorkflow) Init(calls interceptor.WorkflowOutboundInterceptor) error {
	return f.Next.Init(&fencedCalls{interceptor.WorkflowOutboundInterceptorBase{Next: calls}, f.fence})
}

type fencedCalls struct {
	interceptor.WorkflowOutboundInterceptorBase
	fence *runFence
}

// ExecuteActivity schedules an activity.
func (f *fencedCalls) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	info := workflow.GetInfo(ctx)
	header, once := interceptor.WorkflowHeader(ctx), !repeatable[deployments.PresentName(name)]
	if header != nil && once && info.OriginalRunID != "" {
		data := f.fence.at(info.WorkflowExecution.ID, name)
		if run, err := data.ToPayload(ofRun(info.OriginalRunID)); err == nil {
			header[beganAs] = run
		}
	}
	return f.Next.ExecuteActivity(ctx, name, args...)
}

// InterceptActivity rejects activities of other runs.
func (f *runFence) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &fencedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, f}
}

type fencedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	fence *runFence
}

// ExecuteActivity runs an activity of the run that has scheduled it.
func (f *fencedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	if repeatable[deployments.PresentName(info.ActivityType.Name)] {
		return f.Next.ExecuteActivity(ctx, in)
	}
	var began ofRun
	if header := interceptor.Header(ctx)[beganAs]; header != nil {
		data := f.fence.at(info.WorkflowExecution.ID, info.ActivityType.Name)
		if err := data.FromPayload(header, &began); err != nil {
			return nil, temporal.NewNonRetryableApplicationError(err.Error(), string(deployments.CodeForbidden), nil)
		}
	}
	switch run := info.WorkflowExecution.RunID; {
	case began == "":
		return nil, temporal.NewNonRetryableApplicationError("an activity does not say which run of its workflow has "+
			"scheduled it, so it is refused", string(deployments.CodeForbidden), nil)
	case string(began) != run:
		return nil, temporal.NewNonRetryableApplicationError(deployments.ResetText, deployments.ErrorReset, nil)
	}
	return f.Next.ExecuteActivity(ctx, in)
}
