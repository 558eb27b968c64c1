package recovery

import (
	"context"
	"errors"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
)

// FailOrphans ends the activities of worker instances that are known to have ended, so that no heartbeat timeout is
// waited for: attempts that had started are reported as lost, and tasks that wait in the instances' queues, or are
// still added to them, fail as not started. It ends with ctx.
func (r *Recovery) FailOrphans(ctx context.Context, gone []string) {
	if len(gone) == 0 {
		return
	}
	queues := make([]string, 0, len(gone))
	for _, instance := range gone {
		queues = append(queues, deployments.PrivateTaskQueue(instance))
	}
	for _, queue := range queues {
		r.drainDeadQueue(ctx, queue)
	}
	if err := r.reportLost(ctx, queues); err != nil {
		r.warn("report the attempts of workers that are gone", err)
	}
}

// drainDeadQueue polls the private queue of a dead worker and fails every task with ErrorNotStarted, until ctx ends.
func (r *Recovery) drainDeadQueue(ctx context.Context, queue string) {
	drainer := worker.New(r.Client, queue, worker.Options{DisableWorkflowWorker: true,
		MaxConcurrentActivityTaskPollers: 1})
	drainer.RegisterDynamicActivity(func(ctx context.Context, input converter.EncodedValues) (any, error) {
		const message = "its worker is gone"
		var in deployments.StepInput
		if activity.GetInfo(ctx).ActivityType.Name == deployments.ActivityStep && input.Get(&in) == nil {
			return nil, failure.StepNotStarted(message, in)
		}
		return nil, temporal.NewNonRetryableApplicationError(message, deployments.ErrorNotStarted, nil)
	}, activity.DynamicRegisterOptions{})
	if err := drainer.Start(); err != nil {
		r.warn("take over the queue of a worker that is gone", err)
		return
	}
	context.AfterFunc(ctx, drainer.Stop)
}

// warn logs an error that delays recovery only: heartbeat timeouts find the same losses later. What has ended meanwhile
// has lost nothing.
func (r *Recovery) warn(what string, err error) {
	var ended *serviceerror.NotFound
	if errors.As(err, &ended) {
		return
	}
	r.Log.Warn("Losses are found by heartbeat timeouts instead.", "cannot", what, "error", err)
}

// later logs an error of what is done again by itself.
func (r *Recovery) later(what string, err error) {
	r.Log.Warn("This is tried again by itself.", "cannot", what, "error", err)
}

// reportLost fails the attempts that the workers with these identities had started.
func (r *Recovery) reportLost(ctx context.Context, gone []string) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running'", PageSize: 200}
	for {
		page, err := r.Client.ListWorkflow(ctx, request)
		if err != nil {
			return err
		}
		for _, execution := range page.GetExecutions() {
			id, run := execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId()
			description, err := r.Client.DescribeWorkflowExecution(ctx, id, run)
			if err != nil {
				return err
			}
			r.forgetCache(ctx, execution.GetExecution())
			for _, a := range description.GetPendingActivities() {
				if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED ||
					!slices.Contains(gone, a.GetLastWorkerIdentity()) {
					continue
				}
				// An error is no loss: the attempt may have ended since.
				if err := r.Client.CompleteActivityByID(ctx, r.Namespace, id, run, a.GetActivityId(),
					nil, lostError(a)); err != nil {
					r.warn("report "+a.GetActivityId(), err)
				}
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// forgetCache lets any worker take the next task of a workflow; else the one that has it in its cache is waited for.
// first.
func (r *Recovery) forgetCache(ctx context.Context, of *commonpb.WorkflowExecution) {
	_, err := r.Client.WorkflowService().ResetStickyTaskQueue(ctx, &workflowservice.ResetStickyTaskQueueRequest{
		Namespace: r.Namespace, Execution: of,
	})
	if err != nil {
		r.warn("have another worker take over "+of.GetWorkflowId(), err)
	}
}

// lostError returns the error of an attempt whose worker is gone: a step has an unknown outcome, activities that any
// worker can do are retried, and all others did not start.
func lostError(a *workflowpb.PendingActivityInfo) error {
	const message = "its worker is gone"
	switch deployments.PresentName(a.GetActivityType().GetName()) {
	case deployments.ActivityStep:
		return temporal.NewNonRetryableApplicationError(message, deployments.ErrorUnknownOutcome, nil)
	case deployments.ActivityReadHead, deployments.ActivityClaimStack, deployments.ActivityReadHeaders,
		deployments.ActivitySave, deployments.ActivityCommitUpdate, deployments.ActivityTerminateRun,
		deployments.ActivityRecoverUpdate, deployments.ActivityAwaitWorkflow, deployments.ActivityAddToHistory,
		deployments.ActivitySpillPart, deployments.ActivityLoadSpilledPart, deployments.ActivitySubmitUpdate,
		deployments.ActivityAwaitUpdate, deployments.ActivityReportDrift, deployments.ActivityRemoveStack,
		deployments.ActivityBeginLease, deployments.ActivityEndLease, deployments.ActivityDeliverEvent,
		deployments.ActivityAwaitTurn, deployments.ActivityPrepareDeployment, deployments.ActivitySubmitDeployment,
		deployments.ActivityFollowDeployment, deployments.ActivityEndDeployment,
		deployments.ActivityRemoveDestroyedStack:
		return temporal.NewApplicationError(message, deployments.ErrorNotDone)
	}
	return temporal.NewNonRetryableApplicationError(message, deployments.ErrorNotStarted, nil)
}
