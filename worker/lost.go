package worker

import (
	"context"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
)

// disown ends what instances that are known to be dead were doing, so that nobody waits for their heartbeats: an attempt
// that had started is reported lost, and what waits in the queue of the latest, or is still put there, comes back as not
// started. It ends with ctx.
func (c *Connection) disown(ctx context.Context, lost []string) {
	if len(lost) == 0 {
		return
	}
	dead := make([]string, 0, len(lost))
	for _, instance := range lost {
		dead = append(dead, deployments.PrivateTaskQueue(instance))
	}
	undertaker := worker.New(c.Client, dead[len(dead)-1], worker.Options{DisableWorkflowWorker: true})
	undertaker.RegisterDynamicActivity(func(context.Context, converter.EncodedValues) (any, error) {
		return nil, temporal.NewNonRetryableApplicationError("its worker has died", deployments.ErrorNotStarted, nil)
	}, activity.DynamicRegisterOptions{})
	if err := undertaker.Start(); err != nil {
		c.warn("take over the queue of a dead worker", err)
	} else {
		context.AfterFunc(ctx, undertaker.Stop)
	}
	if err := c.reportLost(ctx, dead); err != nil {
		c.warn("report the attempts of dead workers", err)
	}
}

func (c *Connection) warn(what string, err error) {
	if c.config.Log != nil {
		c.config.Log.Warn("Heartbeats will tell what is lost.", "cannot", what, "error", err)
	}
}

// reportLost fails the attempts that workers of these identities had started.
func (c *Connection) reportLost(ctx context.Context, dead []string) error {
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
			for _, a := range description.GetPendingActivities() {
				if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED || !slices.Contains(dead, a.GetLastWorkerIdentity()) {
					continue
				}
				// It may have ended since.
				if err := c.Client.CompleteActivityByID(ctx, c.config.Temporal.Namespace, id, run, a.GetActivityId(), nil, lostError(a)); err != nil {
					c.warn("report "+a.GetActivityId(), err)
				}
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// lostError says what became of an attempt whose worker died: a step may have had its effect, everything else may be
// done again, and what any worker can do is.
func lostError(a *workflowpb.PendingActivityInfo) error {
	const message = "its worker has died"
	switch a.GetActivityType().GetName() {
	case deployments.ActivityStep:
		return temporal.NewNonRetryableApplicationError(message, deployments.ErrorUnknownOutcome, nil)
	case deployments.ActivityHead, deployments.ActivityClaim, deployments.ActivityHeaders, deployments.ActivitySave,
		deployments.ActivitySettled, deployments.ActivityStop, deployments.ActivityRecover, deployments.ActivityEnded:
		return temporal.NewApplicationError(message, deployments.ErrorNotDone)
	}
	return temporal.NewNonRetryableApplicationError(message, deployments.ErrorNotStarted, nil)
}
