package recovery

import (
	"context"
	"slices"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/deployctl/deployctl/deployments"
)

// CloseUnbound terminates the workflows of stacks and schedules whose payloads an earlier build sealed without naming
// the workflow: no worker opens those. A stack starts again from its head; updates in its queue must be submitted
// again.
func (r *Recovery) CloseUnbound(ctx context.Context) {
	request := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 200,
		Query: "ExecutionStatus = 'Running' AND WorkflowType IN ('" +
			deployments.WorkflowStack + "', '" + deployments.WorkflowScheduled + "')"}
	for {
		page, err := r.Client.ListWorkflow(ctx, request)
		if err != nil {
			r.warn("look for workflows of earlier builds", err)
			return
		}
		for _, execution := range page.GetExecutions() {
			id := execution.GetExecution().GetWorkflowId()
			if !r.unbound(ctx, id) {
				continue
			}
			if err := r.Client.TerminateWorkflow(ctx, id, "",
				"an earlier build of deployctl has begun it"); err != nil && !notFound(err) {
				r.warn("end "+id+", which an earlier build has begun", err)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return
		}
	}
}

// unbound reports whether a workflow's input was sealed without naming the workflow.
func (r *Recovery) unbound(ctx context.Context, id string) bool {
	history := r.Client.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !history.HasNext() {
		return false
	}
	first, err := history.Next()
	return err == nil && r.unboundInput(first)
}

// unboundInput reports whether the input in a workflow's first event was sealed without naming the workflow.
func (r *Recovery) unboundInput(first *historypb.HistoryEvent) bool {
	return slices.ContainsFunc(first.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads(), r.Unbound)
}
