package worker

import (
	"context"
	"fmt"
	"strconv"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/deployctl/deployctl/deployments"
)

// unseenVersion returns the first version from next on that no ended update of the stack has in Temporal. That is next,
// unless the bucket was restored from an older backup; then it looks at all updates of the stack that Temporal has. A
// running update is ignored: it is about to claim its stack.
func (c *Connection) unseenVersion(ctx context.Context, name deployments.StackName, next int) (int, error) {
	u := deployments.UpdateName{StackName: name, Version: strconv.Itoa(next)}
	described, err := c.Client.DescribeWorkflowExecution(ctx, deployments.UpdateWorkflowID(u), "")
	if notFound(err) {
		return next, nil
	}
	if err != nil {
		return next, deployments.Errorf(deployments.CodeUnavailable, "ask Temporal for %s: %w", u, err)
	}
	if described.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return next, nil
	}
	last := next
	query := fmt.Sprintf("WorkflowType = '%s' AND %s = '%s' AND %s = '%s' AND %s = '%s'", deployments.WorkflowUpdate,
		deployments.AttributeOrg, name.Organization, deployments.AttributeProject, name.Project,
		deployments.AttributeStack, name.Stack)
	for page := []byte(nil); ; {
		found, err := c.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query,
			NextPageToken: page})
		if err != nil {
			return next, deployments.Errorf(deployments.CodeUnavailable, "list the updates of %s in Temporal: %w", name,
				err)
		}
		for _, execution := range found.GetExecutions() {
			u, err := deployments.UpdateOfWorkflow(execution.GetExecution().GetWorkflowId())
			if err == nil && u.StackName == name {
				last = max(last, u.Number())
			}
		}
		if page = found.GetNextPageToken(); len(page) == 0 {
			return last + 1, nil
		}
	}
}
