package worker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
)

// queues returns the queues that a worker of these organizations polls: the shared one if there are none.
func (c *Connection) queues(organizations []string) []string {
	if len(organizations) == 0 {
		return []string{c.Store.Organizations.SharedTaskQueue()}
	}
	list := make([]string, len(organizations))
	for i, organization := range organizations {
		list[i] = c.Store.Organizations.OrganizationTaskQueue(organization)
	}
	return list
}

// deploymentOf returns the name of the worker deployment of a queue: each queue has one, because a new build on one
// queue says nothing about the others. A name has no dots.
func deploymentOf(name, queue string) string {
	organization, own := deployments.OrganizationOfTaskQueue(queue)
	if name == "" || !own {
		return name
	}
	return name + "/" + strings.ReplaceAll(organization, ".", "+")
}

// dedicate restricts updates and schedules of organizations to their own workers.
func (c *Connection) dedicate(ctx context.Context, organizations []string) error {
	for _, organization := range organizations {
		if err := c.Store.Organizations.Dedicate(ctx, organization); err != nil {
			return err
		}
		if err := c.moveSchedules(ctx, organization, c.Store.Organizations.OrganizationTaskQueue(organization)); err != nil {
			return err
		}
	}
	return nil
}

// Share moves an organization's updates back to the shared workers, and returns when nothing needs its own any more. It
// calls say with what still needs them, whenever that changes.
func (c *Connection) Share(ctx context.Context, organization string, say func(string)) error {
	if err := c.Store.Organizations.Share(ctx, organization); err != nil {
		return err
	}
	if err := c.moveSchedules(ctx, organization, c.Store.Organizations.SharedTaskQueue()); err != nil {
		return err
	}
	for told := ""; ; {
		needed, err := c.runningOn(ctx, organization)
		if err != nil || needed == "" {
			return err
		}
		if needed != told {
			told = needed
			say(needed)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// runningOn returns the ID of a workflow that runs on the workers of an organization; "" if none does.
func (c *Connection) runningOn(ctx context.Context, organization string) (string, error) {
	page, err := c.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("ExecutionStatus = 'Running' AND TaskQueue = '%s'",
			c.Store.Organizations.OrganizationTaskQueue(organization)), PageSize: 1,
	})
	if err != nil {
		return "", deployments.Errorf(deployments.CodeUnavailable, "look what runs on the workers of %s: %s", organization,
			reason(err))
	}
	if len(page.GetExecutions()) == 0 {
		return "", nil
	}
	return page.GetExecutions()[0].GetExecution().GetWorkflowId(), nil
}

// moveSchedules changes the queue of an organization's schedules. Current runs stay where they are.
func (c *Connection) moveSchedules(ctx context.Context, organization, queue string) error {
	found, err := c.Client.ScheduleClient().List(ctx, client.ScheduleListOptions{
		Query: fmt.Sprintf("%s = '%s'", deployments.AttributeOrg, organization),
	})
	for err == nil && found.HasNext() {
		var entry *client.ScheduleListEntry
		if entry, err = found.Next(); err == nil {
			err = c.moveSchedule(ctx, entry.ID, queue)
		}
	}
	if err != nil {
		return deployments.Errorf(deployments.CodeUnavailable, "move the schedules of the organization %s to its "+
			"workers: %s", organization, reason(err))
	}
	return nil
}

// moveSchedule changes nothing else of a schedule: its sealed input stays as it is.
func (c *Connection) moveSchedule(ctx context.Context, id, queue string) error {
	at := &workflowservice.DescribeScheduleRequest{Namespace: c.config.Temporal.Namespace, ScheduleId: id}
	described, err := c.Client.WorkflowService().DescribeSchedule(ctx, at)
	if notFound(err) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	start := described.GetSchedule().GetAction().GetStartWorkflow()
	if start == nil || start.GetTaskQueue().GetName() == queue {
		return nil
	}
	start.TaskQueue.Name = queue
	_, err = c.Client.WorkflowService().UpdateSchedule(ctx, &workflowservice.UpdateScheduleRequest{
		Namespace: c.config.Temporal.Namespace, ScheduleId: id, Schedule: described.GetSchedule(),
		ConflictToken: described.GetConflictToken(),
		Identity:      deployments.SharedTaskQueue, RequestId: uuid.NewString(),
	})
	return err
}
