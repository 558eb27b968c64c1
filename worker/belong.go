package worker

import (
	"context"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// names has a workflow refuse an input that is of another one: what it does, it does to what its name says.
type names struct {
	interceptor.WorkerInterceptorBase
}

// InterceptWorkflow checks a workflow's input before it begins.
func (*names) InterceptWorkflow(
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
	return n.Next.ExecuteWorkflow(ctx, in)
}

// nameOf is the id of the workflow that an input is for; empty for what is none.
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
	}
	return ""
}

// heart tells the server that activities are alive, with details that are sealed for the activity's workflow.
type heart struct{ client client.Client }

// RecordActivityHeartbeat implements activities.Heart.
func (h heart) RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error {
	of := ""
	if activity.IsActivity(ctx) {
		of = activity.GetInfo(ctx).WorkflowExecution.ID
	}
	return h.client.RecordActivityHeartbeatWithOptions(ctx, client.RecordActivityHeartbeatOptions{
		TaskToken: taskToken, Details: details, WorkflowID: of,
	})
}

// closeUnbound ends the stacks' and schedules' workflows that an earlier build has begun, whose payloads do not say
// where they belong: no worker opens those. A stack begins anew from its head; what waited in its queue is to be
// asked for again.
func (c *Connection) closeUnbound(ctx context.Context) {
	request := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 200,
		Query: "ExecutionStatus = 'Running' AND WorkflowType IN ('" +
			deployments.WorkflowStack + "', '" + deployments.WorkflowScheduled + "')"}
	for {
		page, err := c.Client.ListWorkflow(ctx, request)
		if err != nil {
			c.warn("look for workflows of earlier builds", err)
			return
		}
		for _, execution := range page.GetExecutions() {
			id := execution.GetExecution().GetWorkflowId()
			if !c.unbound(ctx, id) {
				continue
			}
			if err := c.Client.TerminateWorkflow(ctx, id, "",
				"an earlier build of deployctl has begun it"); err != nil && !unknown(err) {
				c.warn("end "+id+", which an earlier build has begun", err)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return
		}
	}
}

// unbound tells whether a workflow was begun with a payload that does not say where it belongs.
func (c *Connection) unbound(ctx context.Context, id string) bool {
	history := c.Client.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !history.HasNext() {
		return false
	}
	first, err := history.Next()
	return err == nil && unboundInput(first)
}
