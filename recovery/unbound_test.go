package recovery

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// begun is a server with workflows, each by its id, type, and what its input says.
type begun struct {
	frontend
	workflows map[string][2]string

	mu    sync.Mutex
	ended map[string]string // by id: the reason
}

func (b *begun) ListWorkflowExecutions(
	context.Context, *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	all := &workflowservice.ListWorkflowExecutionsResponse{}
	for id, w := range b.workflows {
		all.Executions = append(all.Executions, &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Type: &commonpb.WorkflowType{Name: w[0]}})
	}
	return all, nil
}

func (b *begun) GetWorkflowExecutionHistory(
	_ context.Context, r *workflowservice.GetWorkflowExecutionHistoryRequest,
) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	input := &commonpb.Payloads{Payloads: []*commonpb.Payload{{
		Data: []byte(b.workflows[r.GetExecution().GetWorkflowId()][1])}}}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{
		Events: []*historypb.HistoryEvent{{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: input},
		}}}}}, nil
}

func (b *begun) TerminateWorkflowExecution(
	_ context.Context, r *workflowservice.TerminateWorkflowExecutionRequest,
) (*workflowservice.TerminateWorkflowExecutionResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended[r.GetWorkflowExecution().GetWorkflowId()] = r.GetReason()
	return &workflowservice.TerminateWorkflowExecutionResponse{}, nil
}

func TestWhatAnEarlierBuildHasBegunIsEndedAndItsUpdatesGoOn(t *testing.T) {
	const why = "an earlier build of deployctl has begun it"
	server := &begun{ended: map[string]string{}, workflows: map[string][2]string{
		"stack/o/p/old": {"Stack", "earlier"}, "update/o/p/old/1": {"Update", "earlier"},
		"update/o/p/leased/1": {"Lease", "earlier"}, "stack/o/p/new": {"Stack", "ours"},
		"update/o/p/new/1": {"Update", "ours"},
	}}
	r := recoveryOn(t, server, nil)
	r.Unbound = func(p *commonpb.Payload) bool { return string(p.GetData()) == "earlier" }
	if stacks := r.CloseUnbound(t.Context()); !slices.Equal(stacks, []string{"stack/o/p/old"}) {
		t.Errorf("the stacks are %v", stacks)
	}
	want := map[string]string{"stack/o/p/old": why, "update/o/p/old/1": buildGone, "update/o/p/leased/1": why}
	if !maps.Equal(server.ended, want) {
		t.Errorf("ended are %v", server.ended)
	}
}
