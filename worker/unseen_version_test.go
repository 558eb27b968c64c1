package worker

import (
	"context"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// memory remembers updates by the ids of their workflows.
type memory struct {
	frontend
	updates map[string]enums.WorkflowExecutionStatus
}

func (m *memory) DescribeWorkflowExecution(
	_ context.Context, r *workflowservice.DescribeWorkflowExecutionRequest,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	status, ok := m.updates[r.GetExecution().GetWorkflowId()]
	if !ok {
		return nil, serviceerror.ToStatus(serviceerror.NewNotFound("no such workflow")).Err()
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: status}}, nil
}

func (m *memory) ListWorkflowExecutions(
	context.Context, *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	all := &workflowservice.ListWorkflowExecutionsResponse{}
	for id := range m.updates {
		all.Executions = append(all.Executions, &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id}})
	}
	return all, nil
}

func TestAVersionThatTemporalRemembersIsNotGivenOutAgain(t *testing.T) {
	const ended, runs = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	remembered := &memory{updates: map[string]enums.WorkflowExecutionStatus{
		"update/o/p/s/3": ended, "update/o/p/s/4": ended, "update/o/p/s/9": ended, "update/o/p/s/p-preview": ended,
		"update/o/p/other/77": ended, "update/strange": ended, "update/o/p/t/5": runs,
	}}
	listener := listen(t)
	serveTemporal(t, listener, remembered, nil)
	config := Temporal{Address: listener.Addr().String(), Namespace: "ours"}.config(statestore.S3Options{}, ample)
	store, err := statestore.New(&statestore.Memory{}, statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	options, err := config.Temporal.options(config, store.Keyring())
	must(t, err)
	c, err := client.NewLazyClient(options)
	must(t, err)
	t.Cleanup(c.Close)
	connection := &Connection{Client: c, Store: store, config: config}
	for _, c := range []struct {
		stack      string
		next, want int
	}{{"s", 2, 2}, {"s", 3, 10}, {"s", 10, 10}, {"t", 5, 5}, {"new", 1, 1}} {
		name := deployments.StackName{Organization: "o", Project: "p", Stack: c.stack}
		if got, err := connection.unseenVersion(t.Context(), name, c.next); err != nil || got != c.want {
			t.Errorf("after %s of version %d comes %d, %v; want %d", c.stack, c.next-1, got, err, c.want)
		}
	}
}
