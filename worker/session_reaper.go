package worker

import (
	"context"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
)

// reapEvery is how often a worker looks for updates whose end it has missed, such as those whose workflow was
// terminated.
const reapEvery = time.Minute

// reap ends the plugins of updates whose workflow is closed. It ends with ctx.
func (c *Connection) reap(ctx context.Context, acts *activities.Activities) {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.reapOnce(ctx, acts)
		}
	}
}

func (c *Connection) reapOnce(ctx context.Context, acts *activities.Activities) {
	for _, u := range activities.Hosted(acts) {
		if c.closed(ctx, u) {
			activities.Forget(ctx, acts, u)
		}
	}
}

// closed reports whether an update's workflow is known to be closed.
func (c *Connection) closed(ctx context.Context, u deployments.UpdateName) bool {
	described, err := c.Client.DescribeWorkflowExecution(ctx, deployments.UpdateWorkflowID(u), "")
	if err != nil {
		return notFound(err)
	}
	return described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING
}
