package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/workflows"
)

// Build is the version of this process: workers with different builds have different workflow code.
var Build = strconv.Itoa(workflows.Revision)

const (
	// versionsEvery is how often a worker checks its deployment.
	versionsEvery = 10 * time.Second
	// unseen is how long after their last poll the workers of a build count as gone: a poll takes a minute.
	unseen = 90 * time.Second
	// buildGone is the reason of terminating the workflow of an update that is migrated. RecoverUpdate recognizes it.
	buildGone = "no worker has the build that it began with"
)

// Deployment is a worker deployment in Temporal, by its name, and the task queue that its workers poll.
type Deployment struct{ Name, Queue string }

// KeepCurrent makes this worker's build the current one of the deployment if it is the newest, or the only one that has
// workers, and migrates the updates of builds that have none. It ends with ctx.
func (r *Recovery) KeepCurrent(ctx context.Context, d Deployment) {
	for {
		pause := versionsEvery
		err := r.keepCurrentOnce(ctx, d)
		if err != nil {
			pause = time.Second
		}
		if err != nil && !overtaken(err) && ctx.Err() == nil {
			r.later("check the deployment "+d.Name, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// overtaken reports whether another worker has changed the deployment meanwhile, as happens when several start.
func overtaken(err error) bool {
	return err != nil && strings.Contains(err.Error(), "conflict token mismatch")
}

func (r *Recovery) keepCurrentOnce(ctx context.Context, d Deployment) error {
	live, err := r.liveBuilds(ctx, d)
	if err != nil {
		return err
	}
	handle := r.Client.WorkerDeploymentClient().GetHandle(d.Name)
	described, err := handle.Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if notFound(err) {
		return nil // no worker of it has polled yet, not even this one
	}
	if err != nil {
		return err
	}
	current := ""
	if v := described.Info.RoutingConfig.CurrentVersion; v != nil {
		current = v.BuildID
	}
	if current != Build && (newer(Build, current) || !live[current]) {
		_, err := handle.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{
			BuildID: Build, ConflictToken: described.ConflictToken, IgnoreMissingTaskQueues: true,
		})
		if err != nil {
			return err
		}
	}
	return r.migrateStranded(ctx, d, live)
}

// newer compares builds; every build is newer than none.
func newer(a, b string) bool {
	n, _ := strconv.Atoi(a)
	m, _ := strconv.Atoi(b)
	return n > m
}

// liveBuilds returns the builds of a deployment whose workers poll.
func (r *Recovery) liveBuilds(ctx context.Context, d Deployment) (map[string]bool, error) {
	live := map[string]bool{Build: true}
	described, err := r.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: r.Namespace, TaskQueueType: enums.TASK_QUEUE_TYPE_WORKFLOW,
		TaskQueue: &taskqueuepb.TaskQueue{Name: d.Queue},
	})
	for _, poller := range described.GetPollers() {
		if o := poller.GetDeploymentOptions(); o.GetDeploymentName() == d.Name &&
			time.Since(poller.GetLastAccessTime().AsTime()) < unseen {
			live[o.GetBuildId()] = true
		}
	}
	return live, err
}

// migrateStranded migrates the updates that wait for a worker of a build that has none.
func (r *Recovery) migrateStranded(ctx context.Context, d Deployment, live map[string]bool) error {
	misplaced := func(workflow string) (bool, error) {
		description, err := r.Client.DescribeWorkflowExecution(ctx, workflow, "")
		if err != nil {
			return false, err
		}
		v := description.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion()
		return v != nil && !live[v.GetBuildId()], nil
	}
	err := r.migrateEach(ctx, d.elsewhere(live), misplaced)
	// a server that does not know the attribute
	if refused := (*serviceerror.InvalidArgument)(nil); errors.As(err, &refused) {
		err = r.migrateEach(ctx, runningUpdates+d.here(), misplaced)
	}
	return err
}

// runningUpdates is the query for all running updates.
const runningUpdates = "ExecutionStatus = 'Running' AND WorkflowType = '" + deployments.WorkflowUpdate + "'"

// here restricts a query to the queue.
func (d Deployment) here() string { return " AND TaskQueue = '" + d.Queue + "'" }

// elsewhere is the query for workflows of updates that are not of a live build: usually none, however many run. A
// workflow without a version is not among them.
func (d Deployment) elsewhere(live map[string]bool) string {
	query := "ExecutionStatus = 'Running' AND WorkflowType IN ('" + deployments.WorkflowUpdate + "', '" +
		deployments.WorkflowRun + "')" + d.here()
	var versions []string
	for _, live := range slices.Sorted(maps.Keys(live)) {
		versions = append(versions, fmt.Sprintf("'%s:%s'", d.Name, live))
	}
	return query + " AND TemporalWorkerDeploymentVersion NOT IN (" + strings.Join(versions, ", ") + ")"
}

// MigrateIncompatible migrates the updates whose histories this build cannot continue.
func (r *Recovery) MigrateIncompatible(ctx context.Context) {
	err := r.migrateEach(ctx, runningUpdates, func(workflow string) (bool, error) {
		h, err := r.readHistory(ctx, workflow, "")
		if err != nil {
			return false, err
		}
		return !h.compatible(), nil
	})
	if err != nil {
		r.warn("find updates of other builds", err)
	}
}

// compatible reports whether this build can continue the workflow. Every build can until the first workflow task has
// ended: there is nothing to replay then, and the SDK treats that as an error.
func (h *history) compatible() bool {
	begun := slices.ContainsFunc(h.events, func(e *historypb.HistoryEvent) bool {
		return e.GetWorkflowTaskCompletedEventAttributes() != nil
	})
	return !begun || h.verify(workflows.Settings{}) == nil
}

// migrateEach migrates the updates that a query finds, by their Update or their Run, and of which one of the two is
// misplaced. Updates that have ended since are skipped.
func (r *Recovery) migrateEach(
	ctx context.Context, query string, misplaced func(workflow string) (bool, error),
) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 200}
	for {
		page, err := r.Client.ListWorkflow(ctx, request)
		if err != nil {
			return err
		}
		for _, execution := range page.GetExecutions() {
			u, err := deployments.UpdateOfWorkflow(execution.GetExecution().GetWorkflowId())
			if err != nil {
				continue // not of an update
			}
			for _, workflow := range []string{deployments.UpdateWorkflowID(u), deployments.RunWorkflowID(u)} {
				wrong, err := misplaced(workflow)
				if err != nil && !notFound(err) {
					return err
				}
				if wrong {
					if err := r.migrate(ctx, u); err != nil {
						return err
					}
					break
				}
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// migrate terminates an update's workflow, so that its stack recovers it and continues it as another version.
func (r *Recovery) migrate(ctx context.Context, u deployments.UpdateName) error {
	err := r.Client.TerminateWorkflow(ctx, deployments.UpdateWorkflowID(u), "", buildGone)
	if notFound(err) {
		return nil
	}
	return err
}

// migrated reports whether an update's workflow run was terminated to migrate it, and whether the update was cancelled:
// a cancelled update is not continued.
func (r *Recovery) migrated(
	ctx context.Context, u deployments.UpdateName, run string,
) (migrated, cancelled bool, err error) {
	h, err := r.readHistory(ctx, deployments.UpdateWorkflowID(u), run)
	if notFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	migrated, cancelled = h.migrated()
	return migrated, cancelled, nil
}

// migrated reads it from the history.
func (h *history) migrated() (migrated, cancelled bool) {
	for _, e := range h.events {
		signal := e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName()
		cancelled = cancelled || signal == deployments.SignalCancel ||
			e.GetWorkflowExecutionCancelRequestedEventAttributes() != nil
		migrated = e.GetWorkflowExecutionTerminatedEventAttributes().GetReason() == buildGone
	}
	return migrated, cancelled
}
