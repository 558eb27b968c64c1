//go:build unix

package attack

import (
	"strings"
	"testing"
	"time"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	updatepb "go.temporal.io/api/update/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
)

// plain is a payload that nobody has sealed.
func plain(t *testing.T, v any) *commonpb.Payloads {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(v)
	harness.Must(t, err)
	return p
}

// activity is one of a running workflow.
type activity struct{ workflow, run, id string }

// forger ends an activity in the server's eyes while a worker carries it out.
type forger func(c workflowservice.WorkflowServiceClient, a activity, results []*commonpb.Payloads) error

func failAs(kind string, final bool) func(t *testing.T) forger {
	return func(t *testing.T) forger {
		return func(c workflowservice.WorkflowServiceClient, a activity, _ []*commonpb.Payloads) error {
			_, err := c.RespondActivityTaskFailedById(patient(t), &workflowservice.RespondActivityTaskFailedByIdRequest{
				Namespace: namespace, WorkflowId: a.workflow, RunId: a.run, ActivityId: a.id, Identity: "intruder",
				Failure: &failurepb.Failure{Message: "forged", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
					ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: kind, NonRetryable: final},
				}},
			})
			return err
		}
	}
}

// failBecause fails an activity with a cause of the attacker's choice.
func failBecause(cause *failurepb.Failure) func(t *testing.T) forger {
	return func(t *testing.T) forger {
		return func(c workflowservice.WorkflowServiceClient, a activity, _ []*commonpb.Payloads) error {
			_, err := c.RespondActivityTaskFailedById(patient(t), &workflowservice.RespondActivityTaskFailedByIdRequest{
				Namespace: namespace, WorkflowId: a.workflow, RunId: a.run, ActivityId: a.id, Identity: "intruder",
				Failure: &failurepb.Failure{Message: "forged", Cause: cause,
					FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
						ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "forged", NonRetryable: true},
					}},
			})
			return err
		}
	}
}

// repeatActivity has the server make further attempts of an activity that has one, soon.
func repeatActivity(t *testing.T) forger {
	return func(c workflowservice.WorkflowServiceClient, a activity, _ []*commonpb.Payloads) error {
		of := &commonpb.WorkflowExecution{WorkflowId: a.workflow, RunId: a.run}
		_, err := c.UpdateActivityOptions(patient(t), &workflowservice.UpdateActivityOptionsRequest{
			Namespace: namespace, Execution: of, Identity: "intruder",
			Activity: &workflowservice.UpdateActivityOptionsRequest_Id{Id: a.id},
			ActivityOptions: &activitypb.ActivityOptions{StartToCloseTimeout: durationpb.New(time.Second),
				RetryPolicy: &commonpb.RetryPolicy{InitialInterval: durationpb.New(time.Second), BackoffCoefficient: 1}},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"start_to_close_timeout",
				"retry_policy.maximum_attempts", "retry_policy.initial_interval"}},
		})
		if err != nil {
			return err
		}
		_, err = c.ResetActivity(patient(t), &workflowservice.ResetActivityRequest{Namespace: namespace, Execution: of,
			Identity: "intruder", Activity: &workflowservice.ResetActivityRequest_Id{Id: a.id}})
		return err
	}
}

func completeWith(choose func(results []*commonpb.Payloads) *commonpb.Payloads) func(t *testing.T) forger {
	return func(t *testing.T) forger {
		return func(c workflowservice.WorkflowServiceClient, a activity, results []*commonpb.Payloads) error {
			_, err := c.RespondActivityTaskCompletedById(patient(t),
				&workflowservice.RespondActivityTaskCompletedByIdRequest{
					Namespace: namespace, WorkflowId: a.workflow, RunId: a.run, ActivityId: a.id,
					Result:   choose(results),
					Identity: "intruder",
				})
			return err
		}
	}
}

// forgedEnds tells the server, while a resource is being made, that this has ended. Nothing is made twice, and nothing
// that was made is forgotten.
func forgedEnds(t *testing.T, f *field) {
	cases := []struct {
		name  string
		forge func(t *testing.T) forger
	}{
		{"cancelled", failBecause(&failurepb.Failure{FailureInfo: &failurepb.Failure_CanceledFailureInfo{
			CanceledFailureInfo: &failurepb.CanceledFailureInfo{}}})},
		{"not-done", failAs("NotDone", false)},
		{"other", completeWith(func(all []*commonpb.Payloads) *commonpb.Payloads { return all[len(all)-1] })},
		{"not-started", failAs("NotStarted", true)},
		{"postponed", failAs("Postponed", false)},
		{"empty", completeWith(func([]*commonpb.Payloads) *commonpb.Payloads { return nil })},
		{"empty-payloads", completeWith(func([]*commonpb.Payloads) *commonpb.Payloads { return &commonpb.Payloads{} })},
		{"silent", failBecause(&failurepb.Failure{FailureInfo: &failurepb.Failure_TimeoutFailureInfo{
			TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{
				TimeoutType: enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START}}})},
		{"not-started-and-ended", func(t *testing.T) forger {
			fail := failAs("NotStarted", true)(t)
			return func(c workflowservice.WorkflowServiceClient, a activity, results []*commonpb.Payloads) error {
				if err := fail(c, a, results); err != nil {
					return err
				}
				_, err := c.TerminateWorkflowExecution(patient(t), &workflowservice.TerminateWorkflowExecutionRequest{
					Namespace: namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: a.workflow}})
				return err
			}
		}},
		{"repeated-by-the-server", repeatActivity},
		{"plain", completeWith(func([]*commonpb.Payloads) *commonpb.Payloads {
			return plain(t, map[string]any{"op": 1, "outcome": "done", "id": "forged"})
		})},
	}
	for _, c := range cases[:size(2, len(cases))] {
		name, forge := c.name, c.forge
		t.Run(name, func(t *testing.T) {
			forged := f.project(t, "forged-"+name, `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: first, type: fake:index:Auto}
  - {register: second, type: fake:index:Auto, properties: {links: ["${first.arn}"]}}
`, "FAKECLOUD_ENDPOINT="+f.cloud.URL())
			gate, err := f.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "forged", Op: fakecloud.Create,
				Object: "second", At: fakecloud.After, Times: 1})
			harness.Must(t, err)
			update := forged.Begin(t, "up", "--yes", "--skip-preview")
			harness.Must(t, gate.Wait(patient(t)))
			f.forge(t, "run/organization/forged-"+name+"/dev/", forge(t))
			harness.Must(t, gate.Open(t.Context()))
			end := update()
			again := forged.Run(t, "up", "--yes", "--skip-preview") // goes on, or says that a person has to look
			if again.Code != 0 && !strings.Contains(again.Said(), "an attempt to create it is undecided") {
				t.Errorf("the update says %s, and the next %s", end.Said(), again.Said())
			}
			var made []string
			all, err := f.cloud.Objects(t.Context(), "")
			harness.Must(t, err)
			for _, o := range all {
				if strings.Contains(o.Owner, "::forged-"+name+"::") {
					made = append(made, o.Name)
					harness.Must(t, f.cloud.Remove(t.Context(), o.Kind, o.ID))
				}
			}
			if len(made) != 2 {
				t.Errorf("made are %v; the update said %s", made, end.Said())
			}
			if state := forged.Must(t, "stack", "export"); strings.Count(state, `::second"`) == 0 {
				t.Errorf("the state has forgotten what was made: %s", state)
			}
		})
	}
}

// forge ends the one step that is under way in a Run.
func (f *field) forge(t *testing.T, prefix string, forge forger) {
	t.Helper()
	c := f.temporal(t)
	for _, id := range workflows(t, c) {
		if !strings.HasPrefix(id, prefix) {
			continue
		}
		var results []*commonpb.Payloads
		for _, e := range history(t, c, id) {
			if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
				results = append(results, a.GetResult())
			}
		}
		w, err := c.DescribeWorkflowExecution(patient(t), id, "")
		harness.Must(t, err)
		for _, a := range w.GetPendingActivities() {
			if strings.HasPrefix(a.GetActivityId(), "create-") {
				at := activity{id, w.GetWorkflowExecutionInfo().GetExecution().GetRunId(), a.GetActivityId()}
				harness.Must(t, forge(c.WorkflowService(), at, results))
				return
			}
		}
	}
	t.Fatal("no step is under way")
}

// terminated ends the workflows of a running update.
func terminated(t *testing.T, f *field) {
	for _, kind := range []string{"run", "update", "stack"} {
		gate, err := f.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "terminated", Op: fakecloud.Read,
			At: fakecloud.Before, Times: 1})
		harness.Must(t, err)
		update := f.victim.Begin(t, "refresh", "--yes", "--skip-preview")
		harness.Must(t, gate.Wait(patient(t)))
		id := "stack/organization/precious/dev"
		if kind != "stack" {
			id = f.running(t, kind)
		}
		harness.Must(t, f.temporal(t).TerminateWorkflow(patient(t), id, "", "attack"))
		harness.Must(t, gate.Open(t.Context()))
		end := update()
		if said := f.victim.Run(t, "stack", "history").Said(); end.Code != 0 && !strings.Contains(said, "failed") &&
			!strings.Contains(said, "interrupted") &&
			!strings.Contains(said, "cancelled") {
			t.Errorf("%s was terminated: the update ends with %d, and the history says %s", kind, end.Code, said)
		}
		f.victim.Update(t, "refresh")
	}
}

// plainStarts starts workflows of every type, and has a schedule start them, with inputs that nobody sealed.
func plainStarts(t *testing.T, f *field) {
	c := f.temporal(t)
	first := history(t, c, "stack/organization/precious/dev")[0]
	queue := first.GetWorkflowExecutionStartedEventAttributes().GetTaskQueue().GetName()
	input := map[string]any{
		"stack": map[string]any{"organization": "organization", "project": "precious", "stack": "dev"},
		"update": map[string]any{"organization": "organization", "project": "precious", "stack": "dev",
			"version": "99"},
	}
	for kind, id := range map[string]string{
		"Update": "update/organization/precious/dev/99", "Run": "run/organization/precious/dev/99",
		"Stack":     "stack/organization/precious/forged",
		"Scheduled": "scheduled/organization/precious/dev/forged",
	} {
		run, err := c.WorkflowService().StartWorkflowExecution(patient(t),
			&workflowservice.StartWorkflowExecutionRequest{
				Namespace: namespace, RequestId: "plain-" + kind, WorkflowId: id,
				WorkflowType: &commonpb.WorkflowType{Name: kind},
				TaskQueue:    &taskqueuepb.TaskQueue{Name: queue}, Input: plain(t, input),
			})
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = c.TerminateWorkflow(t.Context(), id, run.GetRunId(), "the attack is over") })
		if !stuckOrFailed(t, c, id, run.GetRunId()) {
			t.Errorf("%s goes on with a plain input", id)
		}
	}
	_, err := c.WorkflowService().CreateSchedule(patient(t), &workflowservice.CreateScheduleRequest{
		Namespace: namespace, ScheduleId: "scheduled/organization/precious/dev/forged", RequestId: "forged-schedule",
		Schedule: &schedulepb.Schedule{State: &schedulepb.ScheduleState{Paused: true},
			Action: &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{
				StartWorkflow: &workflowpb.NewWorkflowExecutionInfo{
					WorkflowId:   "scheduled/organization/precious/dev/forged",
					WorkflowType: &commonpb.WorkflowType{Name: "Scheduled"},
					TaskQueue:    &taskqueuepb.TaskQueue{Name: queue}, Input: plain(t, input),
				}}}},
	})
	if err == nil {
		t.Cleanup(func() {
			_ = c.ScheduleClient().GetHandle(t.Context(), "scheduled/organization/precious/dev/forged").Delete(
				t.Context())
		})
	}
	if end := f.victim.Run(t, "schedule", "ls"); strings.Contains(end.Said(), "panic") {
		t.Errorf("schedules are listed as %s", end.Said())
	}
}

// hugePayloads sends a stack updates and signals as large as the server takes.
func hugePayloads(t *testing.T, f *field) {
	c := f.temporal(t)
	f.victim.Update(t, "refresh") // its workflow lives
	huge := plain(t, strings.Repeat("x", 1<<20))
	stack := &commonpb.WorkflowExecution{WorkflowId: "stack/organization/precious/dev"}
	for i := range size(3, 40) {
		_, err := c.WorkflowService().SignalWorkflowExecution(patient(t),
			&workflowservice.SignalWorkflowExecutionRequest{
				Namespace: namespace, WorkflowExecution: stack, SignalName: "finished", Input: huge,
				RequestId: "huge-signal-" + time.Now().String(),
			})
		if err != nil {
			t.Logf("signal %d: %v", i, err)
		}
		answer, err := c.WorkflowService().UpdateWorkflowExecution(patient(t),
			&workflowservice.UpdateWorkflowExecutionRequest{
				Namespace: namespace, WorkflowExecution: stack,
				WaitPolicy: &updatepb.WaitPolicy{
					LifecycleStage: enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED},
				Request: &updatepb.Request{Meta: &updatepb.Meta{UpdateId: "huge-" + time.Now().String(),
					Identity: "intruder"},
					Input: &updatepb.Input{Name: "submit", Args: huge}},
			})
		if err == nil && answer.GetOutcome().GetFailure() == nil {
			t.Errorf("the stack takes an update that nobody sealed: %v", answer)
		}
	}
}
