package worker

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
	"go.temporal.io/sdk/converter"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/workflows"
)

// build tells workers apart whose workflows do not do the same.
var build = strconv.Itoa(workflows.Revision)

const (
	// versionsEvery is how often a worker looks after its deployment.
	versionsEvery = 10 * time.Second
	// unseen is how long a build's workers may not ask for work before they are gone: a poll takes a minute.
	unseen = 90 * time.Second
	// goneBuild tells what became of an update that was moved.
	goneBuild = "no worker has the build that it began with"
)

// fleet are the workers of a queue, and the deployment that they are of.
type fleet struct{ deployment, queue string }

// keepCurrent makes this worker's build the current one of the deployment if it is the newest, or the only one that has
// workers, and moves the updates of builds that have none. It ends with ctx.
func (c *Connection) keepCurrent(ctx context.Context, f fleet) {
	for {
		pause := versionsEvery
		if err := c.keepCurrentOnce(ctx, f); err != nil && ctx.Err() == nil {
			c.warn("look after the deployment "+f.deployment, err)
			pause = time.Second
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (c *Connection) keepCurrentOnce(ctx context.Context, f fleet) error {
	live, err := c.liveBuilds(ctx, f)
	if err != nil {
		return err
	}
	handle := c.Client.WorkerDeploymentClient().GetHandle(f.deployment)
	described, err := handle.Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if unknown(err) {
		return nil // no worker of it has been heard of, not even this one
	}
	if err != nil {
		return err
	}
	current := ""
	if v := described.Info.RoutingConfig.CurrentVersion; v != nil {
		current = v.BuildID
	}
	if current != build && (newer(build, current) || !live[current]) {
		_, err := handle.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{
			BuildID: build, ConflictToken: described.ConflictToken, IgnoreMissingTaskQueues: true,
		})
		if err != nil {
			return err
		}
	}
	return c.moveStranded(ctx, f, live)
}

// newer compares builds; any is newer than none.
func newer(a, b string) bool {
	n, _ := strconv.Atoi(a)
	m, _ := strconv.Atoi(b)
	return n > m
}

// liveBuilds are those of a deployment whose workers ask for work.
func (c *Connection) liveBuilds(ctx context.Context, f fleet) (map[string]bool, error) {
	live := map[string]bool{build: true}
	described, err := c.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: c.config.Temporal.Namespace, TaskQueueType: enums.TASK_QUEUE_TYPE_WORKFLOW,
		TaskQueue: &taskqueuepb.TaskQueue{Name: f.queue},
	})
	for _, poller := range described.GetPollers() {
		if o := poller.GetDeploymentOptions(); o.GetDeploymentName() == f.deployment &&
			time.Since(poller.GetLastAccessTime().AsTime()) < unseen {
			live[o.GetBuildId()] = true
		}
	}
	return live, err
}

// moveStranded moves the updates that wait for a worker of a build that has none.
func (c *Connection) moveStranded(ctx context.Context, f fleet, live map[string]bool) error {
	misplaced := func(workflow string) (bool, error) {
		description, err := c.Client.DescribeWorkflowExecution(ctx, workflow, "")
		if err != nil {
			return false, err
		}
		v := description.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion()
		return v != nil && !live[v.GetBuildId()], nil
	}
	err := c.eachUpdate(ctx, f.elsewhere(live), misplaced)
	// a server that does not know the attribute
	if refused := (*serviceerror.InvalidArgument)(nil); errors.As(err, &refused) {
		err = c.eachUpdate(ctx, runningUpdates+f.here(), misplaced)
	}
	return err
}

// runningUpdates finds all updates.
const runningUpdates = "ExecutionStatus = 'Running' AND WorkflowType = '" + deployments.WorkflowUpdate + "'"

// here is what limits a query to the queue.
func (f fleet) here() string { return " AND TaskQueue = '" + f.queue + "'" }

// elsewhere finds the workflows of updates that are not of a live build: mostly none, however many run. A
// workflow that has no version yet is not among them.
func (f fleet) elsewhere(live map[string]bool) string {
	query := "ExecutionStatus = 'Running' AND WorkflowType IN ('" + deployments.WorkflowUpdate + "', '" +
		deployments.WorkflowRun + "')" + f.here()
	var versions []string
	for _, live := range slices.Sorted(maps.Keys(live)) {
		versions = append(versions, fmt.Sprintf("'%s:%s'", f.deployment, live))
	}
	return query + " AND TemporalWorkerDeploymentVersion NOT IN (" + strings.Join(versions, ", ") + ")"
}

// moveUnfit moves the updates whose histories this build cannot go on with.
func (c *Connection) moveUnfit(ctx context.Context) {
	err := c.eachUpdate(ctx, runningUpdates, func(workflow string) (bool, error) {
		h, err := c.recordOf(ctx, workflow)
		if err != nil {
			return false, err
		}
		return !h.fits(), nil
	})
	if err != nil {
		c.warn("look for updates of other builds", err)
	}
}

// fits tells whether this build can go on with the workflow. Every build can as long as no task of it has ended: there
// is nothing to replay then, and the SDK takes that for an error.
func (h *record) fits() bool {
	begun := slices.ContainsFunc(h.events, func(e *historypb.HistoryEvent) bool {
		return e.GetWorkflowTaskCompletedEventAttributes() != nil
	})
	return !unboundInput(h.events[0]) && (!begun || h.replays(workflows.Settings{}) == nil)
}

// unboundInput tells whether a workflow's first event has a sealed payload that does not say where it belongs.
func unboundInput(first *historypb.HistoryEvent) bool {
	for _, p := range first.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads() {
		if string(p.GetMetadata()[converter.MetadataEncoding]) == sealedEncoding && !bound(p) {
			return true
		}
	}
	return false
}

// eachUpdate moves the updates, found by their Update or Run, of which one of the two is in a wrong place. Those that
// have ended meanwhile do not count.
func (c *Connection) eachUpdate(
	ctx context.Context, query string, misplaced func(workflow string) (bool, error),
) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 200}
	for {
		page, err := c.Client.ListWorkflow(ctx, request)
		if err != nil {
			return err
		}
		for _, execution := range page.GetExecutions() {
			u, err := deployments.UpdateOfWorkflow(execution.GetExecution().GetWorkflowId())
			if err != nil {
				continue // somebody else's, or of a name that no update can have
			}
			for _, workflow := range []string{deployments.UpdateWorkflowID(u), deployments.RunWorkflowID(u)} {
				wrong, err := misplaced(workflow)
				if err != nil && !unknown(err) {
					return err
				}
				if wrong {
					if err := c.move(ctx, u); err != nil {
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

// move ends an update's workflow so that its stack recovers it, and it goes on as another.
func (c *Connection) move(ctx context.Context, u deployments.UpdateName) error {
	err := c.Client.TerminateWorkflow(ctx, deployments.UpdateWorkflowID(u), "", goneBuild)
	if unknown(err) {
		return nil
	}
	return err
}

// moved tells whether an update's workflow was ended to be moved. One that was to be cancelled does not go on anywhere.
func (c *Connection) moved(ctx context.Context, u deployments.UpdateName) (moved, cancelled bool, err error) {
	h, err := c.recordOf(ctx, deployments.UpdateWorkflowID(u))
	if unknown(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	moved, cancelled = h.moved()
	return moved, cancelled, nil
}

// moved reads it from the history.
func (h *record) moved() (moved, cancelled bool) {
	for _, e := range h.events {
		signal := e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName()
		cancelled = cancelled || signal == deployments.SignalCancel ||
			e.GetWorkflowExecutionCancelRequestedEventAttributes() != nil
		moved = e.GetWorkflowExecutionTerminatedEventAttributes().GetReason() == goneBuild
	}
	return moved, cancelled
}
