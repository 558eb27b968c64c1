package worker

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// NeedSealedBefore tells what in Temporal may have been sealed before a time, and so may need a key that was replaced then: workflows
// that run, and schedules. It is empty when there is nothing.
func (c *Connection) NeedSealedBefore(ctx context.Context, at time.Time) (string, error) {
	counted, err := c.Client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Query: fmt.Sprintf("ExecutionStatus = 'Running' AND StartTime < '%s'", at.UTC().Format(time.RFC3339)),
	})
	if err != nil {
		return "", fmt.Errorf("count the workflows that run: %w", err)
	}
	if n := counted.GetCount(); n > 0 {
		return fmt.Sprintf("%d workflows run that began before: wait for their updates to end", n), nil
	}
	schedules, err := c.Client.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the schedules: %w", err)
	}
	for schedules.HasNext() {
		entry, err := schedules.Next()
		if err != nil {
			return "", fmt.Errorf("list the schedules: %w", err)
		}
		described, err := c.Client.ScheduleClient().GetHandle(ctx, entry.ID).Describe(ctx)
		if err != nil {
			return "", fmt.Errorf("look at the schedule %s: %w", entry.ID, err)
		}
		if described.Info.CreatedAt.Before(at) {
			return "the schedule " + entry.ID + " was made before: remove it, and make it anew", nil
		}
	}
	return "", nil
}
