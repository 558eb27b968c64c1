package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/deployctl/deployctl/deployments"
)

// unseenVersion returns the first version from next on that no ended update of the stack has in Temporal. That is next,
// unless the bucket was restored from an older backup; then it looks at all updates of the stack that Temporal has. A
// running update is ignored: it is about to claim its stack. Of workflows that this service has not started, only
// those are left out whose names come next: anybody who can use the namespace can start one of any name.
func (c *Connection) unseenVersion(ctx context.Context, name deployments.StackName, next int) (int, error) {
	if taken, err := c.taken(ctx, name, next); err != nil || !taken {
		return next, err
	}
	seen, err := c.startedUpdates(ctx, name, next)
	if err != nil {
		return next, err
	}
	first := next
seen:
	for _, version := range slices.Backward(slices.Sorted(maps.Keys(seen))) {
		for _, execution := range seen[version] {
			if own, err := c.hasStarted(ctx, execution); err != nil {
				return next, err
			} else if own {
				first = version + 1
				break seen
			}
		}
	}
	for free := first; free < first+mostTaken; free++ { // Temporal starts no workflow under a name that was had
		if taken, err := c.taken(ctx, name, free); err != nil || !taken {
			return free, err
		}
	}
	return first, nil
}

// mostTaken is how many versions in a row are left out because others have taken the names of their workflows.
const mostTaken = 100

// taken reports whether there was a workflow of the name of an update's, and is none that runs.
func (c *Connection) taken(ctx context.Context, name deployments.StackName, version int) (bool, error) {
	u := deployments.UpdateName{StackName: name, Version: strconv.Itoa(version)}
	described, err := c.Client.DescribeWorkflowExecution(ctx, deployments.UpdateWorkflowID(u), "")
	if notFound(err) {
		return false, nil
	}
	if err != nil {
		return false, deployments.Errorf(deployments.CodeUnavailable, "ask Temporal for %s: %w", u, err)
	}
	return described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// startedUpdates returns the workflow runs, by version from next on, that are named like updates of a stack and were on
// the queue of this store's workers.
func (c *Connection) startedUpdates(
	ctx context.Context, name deployments.StackName, next int,
) (map[int][]*commonpb.WorkflowExecution, error) {
	query := fmt.Sprintf("WorkflowType IN ('%s', '%s') AND %s = '%s' AND %s = '%s' AND %s = '%s'",
		deployments.WorkflowUpdate, deployments.WorkflowLease,
		deployments.AttributeOrg, name.Organization, deployments.AttributeProject, name.Project,
		deployments.AttributeStack, name.Stack)
	seen := map[int][]*commonpb.WorkflowExecution{}
	for page := []byte(nil); ; {
		found, err := c.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query,
			NextPageToken: page})
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeUnavailable, "list the updates of %s in Temporal: %w", name,
				err)
		}
		for _, e := range found.GetExecutions() {
			u, err := deployments.UpdateOfWorkflow(e.GetExecution().GetWorkflowId())
			if err == nil && u.StackName == name && u.Number() >= next &&
				deployments.SharedOfTaskQueue(e.GetTaskQueue()) == c.Store.Organizations.SharedTaskQueue() {
				seen[u.Number()] = append(seen[u.Number()], e.GetExecution())
			}
		}
		if page = found.GetNextPageToken(); len(page) == 0 {
			return seen, nil
		}
	}
}

// hasStarted reports whether this service has started a workflow run of an update: the input was sealed for it.
func (c *Connection) hasStarted(ctx context.Context, run *commonpb.WorkflowExecution) (bool, error) {
	answer, err := c.Client.WorkflowService().GetWorkflowExecutionHistory(ctx,
		&workflowservice.GetWorkflowExecutionHistoryRequest{Namespace: c.config.Temporal.Namespace, Execution: run,
			MaximumPageSize: 1})
	if notFound(err) { // its retention has ended since
		return false, nil
	}
	if err != nil {
		return false, deployments.Errorf(deployments.CodeUnavailable, "read how %s began: %s", run.GetWorkflowId(),
			reason(err))
	}
	events := answer.GetHistory().GetEvents()
	if len(events) == 0 {
		return false, nil
	}
	data := converter.WithDataConverterSerializationContext(c.readers.Data,
		converter.WorkflowSerializationContext{WorkflowID: run.GetWorkflowId()})
	var in deployments.UpdateInput
	err = data.FromPayloads(events[0].GetWorkflowExecutionStartedEventAttributes().GetInput(), &in)
	return err == nil && deployments.UpdateWorkflowID(in.Update) == run.GetWorkflowId(), nil
}
