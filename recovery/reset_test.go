package recovery

import (
	"context"
	"errors"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/deployctl/deployctl/deployments"
)

// past is a Temporal server that keeps histories by run.
type past struct {
	frontend
	runs   map[string][]*historypb.HistoryEvent
	latest string
}

func (p *past) GetWorkflowExecutionHistory(
	_ context.Context, r *workflowservice.GetWorkflowExecutionHistoryRequest,
) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	run := r.GetExecution().GetRunId()
	if run == "" {
		run = p.latest
	}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: p.runs[run]}}, nil
}

func TestRecoveryReadsTheRunThatHasDoneEverything(t *testing.T) {
	event := func(kind enums.EventType) *historypb.HistoryEvent { return &historypb.HistoryEvent{EventType: kind} }
	reset := func(base string) *historypb.HistoryEvent {
		e := event(enums.EVENT_TYPE_WORKFLOW_TASK_FAILED)
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{
			WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{
				Cause: enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW, BaseRunId: base,
			},
		}
		return e
	}
	next := func(run string) *historypb.HistoryEvent {
		e := event(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW)
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
			WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{
				NewExecutionRunId: run},
		}
		return e
	}
	begin, end := event(enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED),
		event(enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED)
	for name, runs := range map[string]map[string][]*historypb.HistoryEvent{
		"which was not reset": {"latest": {begin, begin, end}},
		"which was reset":     {"latest": {begin, reset("first")}, "first": {begin, begin, end}},
		"which was reset twice": {"latest": {begin, reset("first"), reset("again")},
			"again": {begin, reset("first")}, "first": {begin, begin, end}},
		"of which an earlier run was reset": {"latest": {begin, reset("first")}, "first": {begin, next("second")},
			"second": {begin, begin, end}},
		"of which the second run was reset": {"latest": {begin, reset("second")}, "first": {begin, next("second")},
			"second": {begin, begin, end}},
	} {
		t.Run(name, func(t *testing.T) {
			r := recoveryOn(t, &past{runs: runs, latest: "latest"}, nil)
			events, err := r.events(t.Context(), "run/o/p/s/1", "")
			must(t, err)
			if len(events) != 3 || events[2].GetEventType() != end.GetEventType() {
				t.Errorf("it reads %v", events)
			}
		})
	}
}

func TestRecoveryReadsTheRunsThatTheHeadNames(t *testing.T) {
	begin, end := &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED},
		&historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED}
	child := func(run string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ChildWorkflowExecutionStartedEventAttributes{
			ChildWorkflowExecutionStartedEventAttributes: &historypb.ChildWorkflowExecutionStartedEventAttributes{
				WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: deployments.RunWorkflowID(lostUpdate), RunId: run}},
		}}
	}
	type initiation = historypb.HistoryEvent_StartChildWorkflowExecutionInitiatedEventAttributes
	initiated := &historypb.HistoryEvent{Attributes: &initiation{
		StartChildWorkflowExecutionInitiatedEventAttributes: &historypb.StartChildWorkflowExecutionInitiatedEventAttributes{},
	}}
	r := recoveryOn(t, &past{latest: "of an intruder", runs: map[string][]*historypb.HistoryEvent{
		"of an intruder": {begin, end}, "claimed": {begin, initiated, child("the first"), end},
		"starting": {begin, initiated, end}, "idle": {begin, end}}}, nil)
	for update, want := range map[string]string{"claimed": "the first", "starting": "", "idle": ""} {
		run, err := r.firstRun(t.Context(), lostUpdate, update)
		if run != want || errors.Is(err, errNotStarted) != (update == "idle") {
			t.Errorf("the Run of the update %q is %q, %v", update, run, err)
		}
	}
}
