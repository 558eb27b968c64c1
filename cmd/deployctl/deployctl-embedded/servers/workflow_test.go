package servers_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/workflows"
	"go.temporal.io/api/batch/v1"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func TestACancelReachesAnActivityThatDoesNotHeartbeat(t *testing.T) {
	s := start(t, newHome(t))
	c, w := work(t, s)
	defer c.Close()
	began := make(chan struct{})
	w.RegisterWorkflow(untilCancelled)
	w.RegisterActivityWithOptions(hang(began), activity.RegisterOptions{Name: "hang"})
	must(t, w.Start())
	defer w.Stop()

	ctx := waittest.Context(t) // the activity would hang for an hour
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: "queue"}, untilCancelled)
	must(t, err)
	<-began
	cancelled := time.Now()
	must(t, c.CancelWorkflow(ctx, run.GetID(), ""))
	err = run.Get(ctx, nil)
	if asked := (*temporal.CanceledError)(nil); !errors.As(err, &asked) {
		t.Fatalf("the workflow ended with %v", err)
	}
	t.Logf("cancelled after %s", time.Since(cancelled).Round(time.Millisecond))
}

func TestAWorkflowGoesOnAfterTheServiceWasKilled(t *testing.T) {
	home := newHome(t)
	p := spawn(t, "service", home)
	p.says(t, "running")
	status, err := devserver.ReadStatus(home)
	must(t, err)
	c, w := work(t, &devserver.Server{Status: status})
	defer c.Close()
	began, release := make(chan struct{}), make(chan struct{})
	var seen atomic.Int32
	w.RegisterWorkflow(sequence)
	w.RegisterActivityWithOptions(func(_ context.Context, p []byte) ([]byte, error) {
		if seen.Add(1) == 20 {
			close(began)
			<-release
		}
		return p, nil
	}, activity.RegisterOptions{Name: "repeat"})
	must(t, w.Start())
	defer w.Stop()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "queue"}, sequence, 40)
	must(t, err)
	<-began
	p.kill()
	close(release) // its result finds nobody, until the next service is there
	again := start(t, home)
	if again.Status.TemporalAddress != status.TemporalAddress {
		t.Fatal("the address moved")
	}
	must(t, run.Get(t.Context(), nil))
}

func TestAResetIsRefused(t *testing.T) {
	s := start(t, newHome(t))
	c, w := work(t, s)
	defer c.Close()
	w.RegisterWorkflow(sequence)
	w.RegisterActivity(repeat)
	must(t, w.Start())
	defer w.Stop()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "queue"}, sequence, 1)
	must(t, err)
	must(t, run.Get(t.Context(), nil))
	execution := &common.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()}
	_, alone := c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: devserver.Namespace, WorkflowExecution: execution, WorkflowTaskFinishEventId: 4, RequestId: "one",
	})
	_, many := c.WorkflowService().StartBatchOperation(t.Context(), &workflowservice.StartBatchOperationRequest{
		Namespace: devserver.Namespace, JobId: "many", Reason: "test", VisibilityQuery: "WorkflowId='" + run.GetID() + "'",
		Operation: &workflowservice.StartBatchOperationRequest_ResetOperation{
			ResetOperation: &batch.BatchOperationReset{}},
	})
	for what, err := range map[string]error{"a reset": alone, "a reset of many": many} {
		if refused := (*serviceerror.PermissionDenied)(nil); !errors.As(err, &refused) {
			t.Errorf("%s gets %v", what, err)
		}
	}
}

// TestABacklogOfOneOrganizationHoldsUpNoOther has a worker with one place, for which many tasks of one organization
// wait before one of another organization comes.
func TestABacklogOfOneOrganizationHoldsUpNoOther(t *testing.T) {
	soaktest.Only(t)
	s := start(t, newHome(t))
	c, idle := work(t, s)
	defer c.Close()
	idle.RegisterWorkflow(once)
	must(t, idle.Start()) // it has no activities: they wait
	defer idle.Stop()
	const many = 100
	begin := func(organization string, scheduled bool) client.WorkflowRun {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "queue",
			Priority: workflows.Priority(organization, scheduled)}, once, organization)
		must(t, err)
		return run
	}
	var runs []client.WorkflowRun
	for range many {
		runs = append(runs, begin("evil", true))
	}
	awaitBacklog(t, c, many)
	runs = append(runs, begin("acme", true))
	awaitBacklog(t, c, many+1)
	places := worker.New(c, "places", worker.Options{DisableWorkflowWorker: true, MaxConcurrentActivityExecutionSize: 1,
		MaxConcurrentActivityTaskPollers: 1})
	var order []string // one at a time
	places.RegisterActivityWithOptions(func(_ context.Context, organization string) error {
		order = append(order, organization)
		return nil
	}, activity.RegisterOptions{Name: "take"})
	must(t, places.Start())
	for _, run := range runs {
		must(t, run.Get(t.Context(), nil))
	}
	places.Stop()
	if before := slices.Index(order, "acme"); before > many/10 {
		t.Errorf("%d tasks of the other organization went first", before)
	}
}

// once has one task in a queue of its own.
func once(ctx workflow.Context, organization string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: "places", StartToCloseTimeout: time.Hour})
	return workflow.ExecuteActivity(ctx, "take", organization).Get(ctx, nil)
}

// awaitBacklog waits until so many tasks wait.
func awaitBacklog(t *testing.T, c client.Client, tasks int64) {
	t.Helper()
	waittest.Until(t, "the tasks wait", func() bool {
		queue, err := c.WorkflowService().DescribeTaskQueue(t.Context(), &workflowservice.DescribeTaskQueueRequest{
			Namespace: devserver.Namespace, TaskQueue: &taskqueue.TaskQueue{Name: "places"},
			TaskQueueType: enums.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true})
		must(t, err)
		return queue.GetStats().GetApproximateBacklogCount() >= tasks
	})
}
