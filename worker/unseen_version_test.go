package worker

import (
	"context"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// memory remembers updates by the ids of their workflows.
type memory struct {
	frontend
	updates map[string]enums.WorkflowExecutionStatus
	queues  map[string]string
	inputs  map[string]*commonpb.Payloads
}

func (m *memory) GetWorkflowExecutionHistory(
	_ context.Context, r *workflowservice.GetWorkflowExecutionHistoryRequest,
) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	began := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			Input: m.inputs[r.GetExecution().GetWorkflowId()]}}}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{
		History: &historypb.History{Events: []*historypb.HistoryEvent{began}}}, nil
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
			Execution: &commonpb.WorkflowExecution{WorkflowId: id}, TaskQueue: m.queues[id]})
	}
	return all, nil
}

func TestAVersionThatTemporalRemembersIsNotGivenOutAgain(t *testing.T) {
	const ended, runs = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	remembered := &memory{updates: map[string]enums.WorkflowExecutionStatus{
		"update/o/p/s/3": ended, "update/o/p/s/4": ended, "update/o/p/s/9": ended, "update/o/p/s/p-preview": ended,
		"update/o/p/other/77": ended, "update/strange": ended, "update/o/p/t/5": runs,
		"update/o/p/s/500": ended, "update/o/p/s/600": ended, "update/o/p/s/700": ended, "update/o/p/f/3": ended,
	}, queues: map[string]string{}, inputs: map[string]*commonpb.Payloads{}}
	listener := listen(t)
	serveTemporal(t, listener, remembered, nil)
	config := Temporal{Address: listener.Addr().String(), Namespace: "ours"}.config(bucket.S3Options{}, ample)
	store, err := statestore.New(&bucket.Memory{}, statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	options, err := config.Temporal.options(config, store.Keys.Ring())
	must(t, err)
	c, err := client.NewLazyClient(options)
	must(t, err)
	t.Cleanup(c.Close)
	connection := &Connection{Client: c, Store: store, config: config,
		readers: service.Readers{Data: options.DataConverter}}
	for id := range remembered.updates {
		remembered.queues[id] = store.Organizations.SharedTaskQueue()
		u, err := deployments.UpdateOfWorkflow(id)
		if err != nil {
			continue
		}
		at := converter.WorkflowSerializationContext{WorkflowID: id}
		remembered.inputs[id], err = converter.WithDataConverterSerializationContext(options.DataConverter, at).ToPayloads(
			deployments.UpdateInput{Update: u})
		must(t, err)
	}
	// what anybody can start: on another queue, with the input of another workflow, or with one that is not sealed
	remembered.queues["update/o/p/s/500"] = "evil"
	remembered.inputs["update/o/p/s/600"] = remembered.inputs["update/o/p/s/3"]
	remembered.inputs["update/o/p/s/700"] = nil
	remembered.queues["update/o/p/f/3"] = "evil"
	for _, c := range []struct {
		stack      string
		next, want int
	}{{"s", 2, 2}, {"s", 3, 10}, {"s", 10, 10}, {"t", 5, 5}, {"f", 3, 4}, {"new", 1, 1}} {
		name := deployments.StackName{Organization: "o", Project: "p", Stack: c.stack}
		if got, err := connection.unseenVersion(t.Context(), name, c.next); err != nil || got != c.want {
			t.Errorf("after %s of version %d comes %d, %v; want %d", c.stack, c.next-1, got, err, c.want)
		}
	}
}

func TestABucketThatIsOlderThanTheNamespaceNamesEachStackThatIsBehind(t *testing.T) {
	const ended = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	remembered := &memory{updates: map[string]enums.WorkflowExecutionStatus{
		"update/o/p/s/3": ended, "update/o/p/s/12": ended, "update/o/p/t/1": ended, "update/o/p/removed/7": ended,
		"update/o/p/s/p-preview": ended, "update/strange": ended,
	}}
	listener := listen(t)
	serveTemporal(t, listener, remembered, nil)
	config := Temporal{Address: listener.Addr().String(), Namespace: "ours"}.config(bucket.S3Options{}, ample)
	store, err := statestore.New(&bucket.Memory{}, statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	options, err := config.Temporal.options(config, store.Keys.Ring())
	must(t, err)
	c, err := client.NewLazyClient(options)
	must(t, err)
	t.Cleanup(c.Close)
	connection := &Connection{Client: c, Store: store, config: config}
	must(t, connection.restoredFromBackup(t.Context())) // these stacks are gone
	for _, stack := range []string{"s", "t"} {
		must(t, store.CreateStack(t.Context(), deployments.StackName{Organization: "o", Project: "p", Stack: stack}, nil))
	}
	err = connection.restoredFromBackup(t.Context())
	if err == nil || !strings.Contains(err.Error(), "of o/p/s (Temporal has its update 12), o/p/t (Temporal has its "+
		"update 1). If") {
		t.Errorf("%v", err)
	}
}
