package worker

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// NeedSealedBefore describes what in Temporal may have been sealed before a time, with a key that was replaced then:
// running workflows and schedules. It is empty when there is nothing.
func (c *Connection) NeedSealedBefore(ctx context.Context, at time.Time) (string, error) {
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND StartTime < '%s'", at.UTC().Format(time.RFC3339))
	counted, err := c.Client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	if err != nil {
		return "", fmt.Errorf("count the workflows that run: %w", err)
	}
	if n := counted.GetCount(); n > 0 {
		return c.runningSince(ctx, query, n)
	}
	return c.scheduleBefore(ctx, at)
}

// scheduleBefore tells of a schedule that was made before a time; "" if none was.
func (c *Connection) scheduleBefore(ctx context.Context, at time.Time) (string, error) {
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
			return "", fmt.Errorf("read the schedule %s: %w", entry.ID, err)
		}
		if described.Info.CreatedAt.Before(at) {
			return "the schedule " + entry.ID + " was made before: remove it, and create it again", nil
		}
	}
	return "", nil
}

// runningSince names the first of n running workflows that a query finds, and says how it ends.
func (c *Connection) runningSince(ctx context.Context, query string, n int64) (string, error) {
	page, err := c.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 1})
	if err != nil {
		return "", fmt.Errorf("list the workflows that run: %w", err)
	}
	if len(page.GetExecutions()) == 0 {
		return "a workflow ran until a moment ago: try again", nil
	}
	first := "the workflow " + page.GetExecutions()[0].GetExecution().GetWorkflowId()
	if n > 1 {
		first = fmt.Sprintf("%d workflows, such as %s,", n, page.GetExecutions()[0].GetExecution().GetWorkflowId())
	}
	return first + " began before: wait until they have ended (an update's with its update, a stack's a minute after " +
		"its last update)", nil
}
