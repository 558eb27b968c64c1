package worker

import (
	"context"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
)

// disown ends what instances that are known to have ended were doing, so that nobody waits for their heartbeats: an
// attempt that had started is reported lost, and what waits in their queues, or is still put there, comes back as not
// started. It ends with ctx.
func (c *Connection) disown(ctx context.Context, gone []string) {
	if len(gone) == 0 {
		return
	}
	queues := make([]string, 0, len(gone))
	for _, instance := range gone {
		queues = append(queues, deployments.PrivateTaskQueue(instance))
	}
	for _, queue := range queues {
		c.bury(ctx, queue)
	}
	if err := c.reportLost(ctx, queues); err != nil {
		c.warn("report the attempts of workers that are gone", err)
	}
}

// bury answers for a worker that is gone whatever is asked of it.
func (c *Connection) bury(ctx context.Context, queue string) {
	undertaker := worker.New(c.Client, queue, worker.Options{DisableWorkflowWorker: true,
		MaxConcurrentActivityTaskPollers: 1})
	undertaker.RegisterDynamicActivity(func(context.Context, converter.EncodedValues) (any, error) {
		return nil, temporal.NewNonRetryableApplicationError("its worker is gone", deployments.ErrorNotStarted, nil)
	}, activity.DynamicRegisterOptions{})
	if err := undertaker.Start(); err != nil {
		c.warn("take over the queue of a worker that is gone", err)
		return
	}
	context.AfterFunc(ctx, undertaker.Stop)
}

func (c *Connection) warn(what string, err error) {
	if c.config.Log != nil {
		c.config.Log.Warn("Heartbeats will tell what is lost.", "cannot", what, "error", err)
	}
}

// reportLost fails the attempts that workers of these identities had started.
func (c *Connection) reportLost(ctx context.Context, gone []string) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running'", PageSize: 200}
	for {
		page, err := c.Client.ListWorkflow(ctx, request)
		if err != nil {
			return err
		}
		for _, execution := range page.GetExecutions() {
			id, run := execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId()
			description, err := c.Client.DescribeWorkflowExecution(ctx, id, run)
			if err != nil {
				return err
			}
			c.forgetCache(ctx, execution.GetExecution())
			for _, a := range description.GetPendingActivities() {
				if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED ||
					!slices.Contains(gone, a.GetLastWorkerIdentity()) {
					continue
				}
				// It may have ended since.
				if err := c.Client.CompleteActivityByID(ctx, c.config.Temporal.Namespace, id, run, a.GetActivityId(),
					nil, lostError(a)); err != nil {
					c.warn("report "+a.GetActivityId(), err)
				}
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// forgetCache lets any worker have the next task of a workflow: the one that has it in its cache would be waited for
// first.
func (c *Connection) forgetCache(ctx context.Context, of *commonpb.WorkflowExecution) {
	_, err := c.Client.WorkflowService().ResetStickyTaskQueue(ctx, &workflowservice.ResetStickyTaskQueueRequest{
		Namespace: c.config.Temporal.Namespace, Execution: of,
	})
	if err != nil {
		c.warn("have another worker take over "+of.GetWorkflowId(), err)
	}
}

// lostError says what became of an attempt whose worker is gone: a step may have had its effect, everything else may be
// done again, and what any worker can do is.
func lostError(a *workflowpb.PendingActivityInfo) error {
	const message = "its worker is gone"
	switch a.GetActivityType().GetName() {
	case deployments.ActivityStep:
		return temporal.NewNonRetryableApplicationError(message, deployments.ErrorUnknownOutcome, nil)
	case deployments.ActivityHead, deployments.ActivityClaim, deployments.ActivityHeaders, deployments.ActivitySave,
		deployments.ActivitySettled, deployments.ActivityStop, deployments.ActivityRecover, deployments.ActivityEnded,
		deployments.ActivityEnter,
		deployments.ActivityPutAside, deployments.ActivityTakeUp,
		deployments.ActivitySubmit, deployments.ActivityFollow, deployments.ActivityCompile:
		return temporal.NewApplicationError(message, deployments.ErrorNotDone)
	}
	return temporal.NewNonRetryableApplicationError(message, deployments.ErrorNotStarted, nil)
}
