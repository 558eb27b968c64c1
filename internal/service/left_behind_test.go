package service

import (
	"context"
	"slices"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// crowded is a Temporal in which the workflows of a stack are on a queue of their own choice.
type crowded struct {
	deserted
	queue   string            // of the Stack workflow
	running map[string]string // the queues of the running workflows by their ids
	ended   []string
}

func (c *crowded) DescribeWorkflowExecution(
	ctx context.Context, id, run string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := c.deserted.DescribeWorkflowExecution(ctx, id, run)
	d.ExecutionConfig.TaskQueue = &taskqueuepb.TaskQueue{Name: c.queue}
	return d, err
}

func (c *crowded) ListWorkflow(
	context.Context, *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	answer := &workflowservice.ListWorkflowExecutionsResponse{}
	for id, queue := range c.running {
		answer.Executions = append(answer.Executions, &workflowpb.WorkflowExecutionInfo{TaskQueue: queue,
			Execution: &commonpb.WorkflowExecution{WorkflowId: id}})
	}
	return answer, nil
}

func (c *crowded) TerminateWorkflow(_ context.Context, id, _, _ string, _ ...any) error {
	c.ended = append(c.ended, id)
	return nil
}

func TestWhatALostBucketHasLeftBehindIsEndedUnlessItIsServed(t *testing.T) {
	store, err := statestore.New(&bucket.Memory{}, statestore.Options{Master: storetest.Master, KeepEmpty: true})
	must(t, err)
	must(t, store.Check(t.Context()))
	must(t, store.Keys.SetUp(t.Context()))
	own, other := store.Organizations.SharedTaskQueue(), deployments.StoreTaskQueue("0123456789ab")
	stack := deployments.StackWorkflowID(dev)
	polledNow := deserted{polled: []time.Duration{time.Second}}
	for name, c := range map[string]struct {
		temporal crowded
		ended    []string
	}{
		"its own, without workers":      {crowded{queue: own}, nil},
		"another's, which has workers":  {crowded{queue: other, deserted: polledNow}, nil},
		"another's, without workers":    {crowded{queue: other}, []string{"u1", stack}},
		"of an organization's workers":  {crowded{queue: other + "/acme"}, []string{"u1", stack}},
		"of a store of no known origin": {crowded{queue: "elsewhere"}, []string{stack}},
	} {
		t.Run(name, func(t *testing.T) {
			c.temporal.running = map[string]string{"u1": other, "u2": own, stack: c.temporal.queue}
			s := New(&c.temporal, store, Readers{})
			ended, err := s.endLeftBehind(t.Context(), dev)
			if err != nil || ended != (c.ended != nil) || !slices.Equal(c.temporal.ended, c.ended) {
				t.Errorf("%v were ended (%t, %v), and not %v", c.temporal.ended, ended, err, c.ended)
			}
		})
	}
}
