//go:build unix

package attack

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	querypb "go.temporal.io/api/query/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
)

// temporalAttacks are those of whoever may use the Temporal namespace, an administrator of the cluster for instance,
// but does not have the service's key.
var temporalAttacks = []attack{
	{"temporal/read-secrets", readHistories},
	{"temporal/spliced-request", splicedRequest},
	{"temporal/spliced-start", splicedStart},
	{"temporal/spliced-signal", splicedSignal},
	{"temporal/plain-payloads", plainPayloads},
	{"temporal/reset", resetRun},
	{"temporal/schedule-runs", scheduleRuns},
	{"temporal/forged-ends", forgedEnds},
	{"temporal/absent-results", absentResults},
	{"temporal/terminated", terminated},
	{"temporal/plain-starts", plainStarts},
	{"temporal/huge-payloads", hugePayloads},
	{"temporal/repeated-payloads", repeatedPayloads},
	{"temporal/restarted-update", restartedUpdate},
	{"temporal/another-payload", anotherPayload},
	{"temporal/repeated-step", repeatedStep},
	{"temporal/burnt-versions", burntVersions},
}

// temporal is Temporal as its administrator has it.
func (f *field) temporal(t *testing.T) client.Client {
	t.Helper()
	var way cluster.Temporal
	harness.Must(t, json.Unmarshal([]byte(f.Deployctl(f.Dir).Must(t, "dev", "status", "--json")), &way))
	c, err := way.Dial()
	harness.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

const namespace = "deployctl"

// history is that of a workflow's newest run.
func history(t *testing.T, c client.Client, id string) (events []*historypb.HistoryEvent) {
	t.Helper()
	for all := c.GetWorkflowHistory(patient(t), id, "", false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); all.HasNext(); {
		e, err := all.Next()
		harness.Must(t, err)
		events = append(events, e)
	}
	return events
}

// workflows are the ids of all workflows that Temporal knows.
func workflows(t *testing.T, c client.Client) (ids []string) {
	t.Helper()
	found, err := c.ListWorkflow(patient(t), &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace,
		PageSize: 1000})
	harness.Must(t, err)
	for _, e := range found.GetExecutions() {
		ids = append(ids, e.GetExecution().GetWorkflowId())
	}
	return ids
}

func readHistories(t *testing.T, f *field) {
	c, read := f.temporal(t), 0
	for _, id := range workflows(t, c) {
		for _, e := range history(t, c, id) {
			noSecrets(t, id, e.String())
			read++
		}
	}
	if read < 20 {
		t.Errorf("only %d events were read", read)
	}
}

// doomed is another stack of the same bundle form, which its owner destroys: what is copied from its history is a
// valid, sealed request to destroy.
func (f *field) doomed(t *testing.T, name string) (tool *harness.Tool, c client.Client) {
	t.Helper()
	tool = f.project(t, name, "steps: []\n")
	tool.Update(t, "up")
	tool.Update(t, "destroy")
	return tool, f.temporal(t)
}

func splicedRequest(t *testing.T, f *field) {
	_, c := f.doomed(t, "spliced")
	copied := 0
	for _, e := range history(t, c, "stack/organization/spliced/dev") {
		a := e.GetWorkflowExecutionUpdateAcceptedEventAttributes()
		if a == nil {
			continue
		}
		copied++
		in := a.GetAcceptedRequest().GetInput()
		stack := &commonpb.WorkflowExecution{WorkflowId: "stack/organization/precious/dev"}
		// The stack's workflow may have ended for lack of work: then the request comes with the start of a new one.
		f.victim.Update(t, "refresh")
		answer, err := c.WorkflowService().UpdateWorkflowExecution(patient(t),
			&workflowservice.UpdateWorkflowExecutionRequest{
				Namespace: namespace, WorkflowExecution: stack,
				WaitPolicy: &updatepb.WaitPolicy{
					LifecycleStage: enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED},
				Request: &updatepb.Request{Meta: &updatepb.Meta{UpdateId: fmt.Sprintf("splice-%d", copied),
					Identity: "intruder"}, Input: in},
			})
		if err == nil && answer.GetOutcome().GetFailure() == nil {
			t.Errorf("the stack took %s, which was sealed for another stack: %v", in.GetName(), answer)
		}
	}
	if copied == 0 {
		t.Fatal("the history has no request to copy")
	}
}

// splicedStart starts workflows of the victim with inputs of another stack.
func splicedStart(t *testing.T, f *field) {
	_, c := f.doomed(t, "started")
	for _, id := range []string{"update/organization/started/dev/2", "run/organization/started/dev/2"} {
		started := history(t, c, id)[0].GetWorkflowExecutionStartedEventAttributes()
		victim := id[:len(id)-len("organization/started/dev/2")] + "organization/precious/dev/77"
		run, err := c.WorkflowService().StartWorkflowExecution(patient(t),
			&workflowservice.StartWorkflowExecutionRequest{
				Namespace: namespace, RequestId: victim, WorkflowId: victim, WorkflowType: started.GetWorkflowType(),
				TaskQueue: &taskqueuepb.TaskQueue{Name: started.GetTaskQueue().GetName()}, Input: started.GetInput(),
				Header: started.GetHeader(),
			})
		if err != nil {
			continue // refused at once
		}
		t.Cleanup(func() { _ = c.TerminateWorkflow(t.Context(), victim, run.GetRunId(), "the attack is over") })
		if tasks := stuckOrFailed(t, c, victim, run.GetRunId()); !tasks {
			t.Errorf("%s took the input of another stack", victim)
		}
	}
}

// stuckOrFailed waits until a workflow has failed a task or itself, and reports false when it went on instead.
func stuckOrFailed(t *testing.T, c client.Client, id, run string) bool {
	t.Helper()
	for all := c.GetWorkflowHistory(patient(t), id, run, true,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); all.HasNext(); {
		e, err := all.Next()
		harness.Must(t, err)
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
			return true
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
			return false
		}
	}
	return true
}

// splicedSignal sends the victim's workflows what another stack's were sent.
func splicedSignal(t *testing.T, f *field) {
	_, c := f.doomed(t, "signalled")
	gate, err := f.hold(t)
	harness.Must(t, err)
	sent := 0
	victims := []string{"stack/organization/precious/dev", f.running(t, "update"), f.running(t, "run")}
	before := 0
	for _, at := range victims {
		before += f.refusals(t, at)
	}
	for _, id := range workflows(t, c) {
		for _, e := range history(t, c, id) {
			a := e.GetWorkflowExecutionSignaledEventAttributes()
			if a == nil {
				continue
			}
			for _, at := range victims {
				_, err := c.WorkflowService().SignalWorkflowExecution(patient(t),
					&workflowservice.SignalWorkflowExecutionRequest{
						Namespace: namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: at},
						SignalName: a.GetSignalName(), Input: a.GetInput(),
						RequestId: fmt.Sprint(id, e.GetEventId(), at),
					})
				if err == nil {
					sent++
				}
			}
		}
	}
	if sent == 0 {
		t.Error("no signal was sent")
	}
	f.refuses(t, before, victims...)
	gate(t)
}

// plainPayloads asks and tells with payloads that nobody sealed.
func plainPayloads(t *testing.T, f *field) {
	c := f.temporal(t)
	gate, err := f.hold(t)
	harness.Must(t, err)
	for _, kind := range []string{"update", "run"} {
		id := f.running(t, kind)
		for _, signal := range []string{"cancel", "resolve", "messages", "worker-lost", "changes-made",
			"finished"} {
			if err := c.SignalWorkflow(patient(t), id, "", signal,
				map[string]any{"forced": true, "worker": "mine"}); err != nil {
				t.Logf("%s to %s: %v", signal, id, err)
			}
		}
		f.refuses(t, 0, id) // of this update no signal was refused before
		_, _ = c.WorkflowService().QueryWorkflow(patient(t), &workflowservice.QueryWorkflowRequest{
			Namespace: namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: id},
			Query: &querypb.WorkflowQuery{QueryType: "__stack_trace"},
		})
	}
	gate(t)
}

// resetRun resets the workflows of a running update; whoever owns the cluster may, if the server lets him.
func resetRun(t *testing.T, f *field) {
	c := f.temporal(t)
	gate, err := f.hold(t)
	harness.Must(t, err)
	for _, kind := range []string{"run", "update"} {
		_, err := c.ResetWorkflowExecution(patient(t), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: f.running(t, kind)},
			Reason:    "attack",
			RequestId: "reset-" + kind + time.Now().String(), WorkflowTaskFinishEventId: 4,
		})
		if err == nil {
			t.Errorf("the embedded Temporal resets %s", kind)
		}
	}
	gate(t)
}
