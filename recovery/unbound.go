package recovery

import (
	"context"
	"slices"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/deployctl/deployctl/deployments"
)

// CloseUnbound terminates workflows whose payloads an earlier build sealed without saying all that they are of: no
// worker opens those. It returns the ids of those that were of stacks. A stack starts again from its head, and recovers
// its update; updates in its queue must be submitted again.
func (r *Recovery) CloseUnbound(ctx context.Context) (stacks []string) {
	request := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 200,
		Query: "ExecutionStatus = 'Running' AND WorkflowType IN ('" + strings.Join([]string{deployments.WorkflowStack,
			deployments.WorkflowUpdate, deployments.WorkflowLease, deployments.WorkflowScheduled,
			deployments.WorkflowDeployment, deployments.WorkflowNotify}, "', '") + "')"}
	for {
		page, err := r.Client.ListWorkflow(ctx, request)
		if err != nil {
			r.warn("look for workflows of earlier builds", err)
			return stacks
		}
		for _, execution := range page.GetExecutions() {
			id, kind := execution.GetExecution().GetWorkflowId(), execution.GetType().GetName()
			if !r.unbound(ctx, id) {
				continue
			}
			reason := "an earlier build of deployctl has begun it"
			if kind == deployments.WorkflowUpdate {
				reason = buildGone
			}
			switch err := r.Client.TerminateWorkflow(ctx, id, "", reason); {
			case err != nil && !notFound(err):
				r.warn("end "+id+", which an earlier build has begun", err)
			case kind == deployments.WorkflowStack:
				stacks = append(stacks, id)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return stacks
		}
	}
}

// unbound reports whether an earlier build sealed the input in a workflow's first event.
func (r *Recovery) unbound(ctx context.Context, id string) bool {
	history := r.Client.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !history.HasNext() {
		return false
	}
	first, err := history.Next()
	return err == nil && slices.ContainsFunc(
		first.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads(), r.Unbound)
}
