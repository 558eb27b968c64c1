package devserver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/waittest"
	"go.temporal.io/api/batch/v1"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
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
	status, err := ReadStatus(home)
	must(t, err)
	c, w := work(t, &Server{Status: status})
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
		Namespace: Namespace, WorkflowExecution: execution, WorkflowTaskFinishEventId: 4, RequestId: "one",
	})
	_, many := c.WorkflowService().StartBatchOperation(t.Context(), &workflowservice.StartBatchOperationRequest{
		Namespace: Namespace, JobId: "many", Reason: "test", VisibilityQuery: "WorkflowId='" + run.GetID() + "'",
		Operation: &workflowservice.StartBatchOperationRequest_ResetOperation{
			ResetOperation: &batch.BatchOperationReset{}},
	})
	for what, err := range map[string]error{"a reset": alone, "a reset of many": many} {
		if refused := (*serviceerror.PermissionDenied)(nil); !errors.As(err, &refused) {
			t.Errorf("%s gets %v", what, err)
		}
	}
}
