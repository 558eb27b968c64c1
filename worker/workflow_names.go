package worker

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// workflowNames rejects an input that is of another workflow: what a workflow does must match its name. And it rejects
// a Run that its Update has not started: a copy of the Run's input could do again what was done.
type workflowNames struct {
	interceptor.WorkerInterceptorBase
}

// InterceptWorkflow checks a workflow's input before it begins.
func (*workflowNames) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &namedWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type namedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
}

// ExecuteWorkflow runs a workflow.
func (n *namedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	for _, arg := range in.Args {
		if want := nameOf(arg); want != "" && want != started.ReplaceAllString(id, "") {
			return nil, temporal.NewNonRetryableApplicationError(
				"the input of workflow "+id+" is one of "+want+", so it is refused",
				string(deployments.CodeForbidden), nil)
		}
	}
	if err := startedByUpdate(ctx, in.Args); err != nil {
		return nil, err
	}
	return n.Next.ExecuteWorkflow(ctx, in)
}

// startedByUpdate reports that a Run is no child of its Update.
func startedByUpdate(ctx workflow.Context, args []any) error {
	for _, arg := range args {
		in, ok := arg.(deployments.RunInput)
		if parent := workflow.GetInfo(ctx).ParentWorkflowExecution; ok &&
			(parent == nil || parent.ID != deployments.UpdateWorkflowID(in.Update)) {
			return temporal.NewNonRetryableApplicationError("the Run was not started by the workflow of update "+
				in.Update.String()+", so it is refused", string(deployments.CodeForbidden), nil)
		}
	}
	return nil
}

// nameOf returns the id of the workflow for which an input is; empty if it names none.
func nameOf(input any) string {
	switch in := input.(type) {
	case deployments.StackInput:
		return deployments.StackWorkflowID(in.Stack)
	case deployments.UpdateInput:
		return deployments.UpdateWorkflowID(in.Update)
	case deployments.RunInput:
		return deployments.RunWorkflowID(in.Update)
	case deployments.ScheduledInput:
		return deployments.ScheduleID(in.Schedule.Name)
	case deployments.DeploymentInput:
		return deployments.DeploymentWorkflowID(in.Name)
	case deployments.NotifyInput:
		return deployments.WebhookWorkflowID(in)
	}
	return ""
}

// heartbeatRecorder records heartbeats, with details that are sealed for the activity.
type heartbeatRecorder struct{ client client.Client }

// RecordActivityHeartbeat implements heartbeat.Heart.
func (h heartbeatRecorder) RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error {
	o := client.RecordActivityHeartbeatOptions{TaskToken: taskToken, Details: details}
	if activity.IsActivity(ctx) {
		info := activity.GetInfo(ctx)
		o.WorkflowID, o.ActivityType = info.WorkflowExecution.ID, info.ActivityType.Name
	}
	return h.client.RecordActivityHeartbeatWithOptions(ctx, o)
}
