//go:build unix

package attack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
)

// puppet is a workflow of the attacker's own under the id of one of the service's.
type puppet struct {
	c         client.Client
	id, queue string
	token     []byte // of the task that it has to answer
}

func newPuppet(t *testing.T, c client.Client, id string) *puppet {
	t.Helper()
	p := &puppet{c: c, id: id, queue: "evil-" + uuid.NewString()}
	_, err := c.WorkflowService().StartWorkflowExecution(patient(t), &workflowservice.StartWorkflowExecutionRequest{
		Namespace: namespace, RequestId: uuid.NewString(), WorkflowId: id,
		WorkflowType: &commonpb.WorkflowType{Name: "Puppet"}, TaskQueue: &taskqueuepb.TaskQueue{Name: p.queue},
		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
		WorkflowTaskTimeout:      durationpb.New(time.Minute),
	})
	harness.Must(t, err)
	p.poll(t)
	return p
}

// poll waits for the puppet's next task, and returns the events so far.
func (p *puppet) poll(t *testing.T) []*historypb.HistoryEvent {
	t.Helper()
	for {
		task, err := p.c.WorkflowService().PollWorkflowTaskQueue(patient(t), &workflowservice.PollWorkflowTaskQueueRequest{
			Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: p.queue}, Identity: "intruder"})
		harness.Must(t, err)
		if len(task.GetTaskToken()) > 0 && task.GetQuery() == nil {
			p.token = task.GetTaskToken()
			return task.GetHistory().GetEvents()
		}
	}
}

// call has a worker carry out an activity with a copied input and header, and reports whether it has.
func (p *puppet) call(t *testing.T, activity string, as *historypb.ActivityTaskScheduledEventAttributes) (done bool) {
	t.Helper()
	_, err := p.c.WorkflowService().RespondWorkflowTaskCompleted(patient(t),
		&workflowservice.RespondWorkflowTaskCompletedRequest{
			Namespace: namespace, TaskToken: p.token, Identity: "intruder",
			Commands: []*commandpb.Command{{CommandType: enumspb.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
				Attributes: &commandpb.Command_ScheduleActivityTaskCommandAttributes{
					ScheduleActivityTaskCommandAttributes: &commandpb.ScheduleActivityTaskCommandAttributes{
						ActivityId: uuid.NewString(), ActivityType: &commonpb.ActivityType{Name: activity},
						TaskQueue: as.GetTaskQueue(), Input: as.GetInput(), Header: as.GetHeader(),
						ScheduleToCloseTimeout: durationpb.New(2 * time.Minute),
						StartToCloseTimeout:    durationpb.New(2 * time.Minute),
						RetryPolicy:            &commonpb.RetryPolicy{MaximumAttempts: 1},
					}}}},
		})
	harness.Must(t, err)
	for _, e := range p.poll(t) {
		done = e.GetActivityTaskCompletedEventAttributes() != nil || // the last one counts
			done && e.GetActivityTaskFailedEventAttributes() == nil && e.GetActivityTaskTimedOutEventAttributes() == nil
	}
	return done
}

// end ends the puppet.
func (p *puppet) end(t *testing.T) {
	t.Helper()
	harness.Must(t, p.c.TerminateWorkflow(patient(t), p.id, "", "the attack is over"))
}

// scheduled is the first activity of a type in a history; of those whose id begins with a prefix.
func scheduled(t *testing.T, events []*historypb.HistoryEvent, kind, id string,
) *historypb.ActivityTaskScheduledEventAttributes {
	t.Helper()
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == kind &&
			strings.HasPrefix(a.GetActivityId(), id) {
			return a
		}
	}
	t.Fatalf("the history schedules no %s", kind)
	return nil
}

const two = `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: first, type: fake:index:Auto}
  - {register: second, type: fake:index:Auto, properties: {links: ["${first.arn}"]}}
`

// half begins an update of a project that makes first, saves that, and waits within the creation of second.
func (f *field) half(
	t *testing.T, project string,
) (tool *harness.Tool, gate fakecloud.Gate, update func() harness.End) {
	t.Helper()
	tool = f.project(t, project, two, "FAKECLOUD_ENDPOINT="+f.cloud.URL())
	gate, err := f.cloud.SetGate(t.Context(), fakecloud.Fault{Name: project, Op: fakecloud.Create, Object: "second",
		At: fakecloud.After, Times: 1})
	harness.Must(t, err)
	update = tool.Begin(t, "up", "--yes", "--skip-preview")
	harness.Must(t, gate.Wait(patient(t)))
	c := f.temporal(t)
	harness.Eventually(t, "what was made is saved", func() bool {
		saves := 0
		for _, e := range history(t, c, "run/organization/"+project+"/dev/1") {
			if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == "Save" {
				saves++
			}
		}
		return saves > 0 && len(f.deltas(t, project)) >= saves
	})
	return tool, gate, update
}

// deltas are the saves of the first update of a project.
func (f *field) deltas(t *testing.T, project string) (paths []string) {
	t.Helper()
	_ = filepath.WalkDir(filepath.Join(f.objects(t), "stacks/organization", project, "dev"),
		func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.Contains(path, "/delta/") {
				paths = append(paths, path)
			}
			return nil
		})
	return paths
}

// madeOnce checks that after the attack on its first update a project has each resource once, also in its state.
func (f *field) madeOnce(t *testing.T, tool *harness.Tool, project string) {
	t.Helper()
	again := tool.Run(t, "up", "--yes", "--skip-preview") // goes on, or says that a person has to look
	if again.Code != 0 && !strings.Contains(again.Said(), "an attempt to create it is undecided") {
		t.Errorf("the next update says %s", again.Said())
	}
	if made := f.removeAll(t, project); len(made) != 2 {
		t.Errorf("made are %v", made)
	}
	if state := tool.Must(t, "stack", "export"); strings.Count(state, `::first"`) == 0 ||
		strings.Count(state, `::second"`) == 0 {
		t.Errorf("the state has forgotten what was made: %s", state)
	}
}

// anotherPayload commits a running update with what was sealed for something else.
func anotherPayload(t *testing.T, f *field) {
	const project = "mistaken"
	tool, gate, update := f.half(t, project)
	c := f.temporal(t)
	updateID := "update/organization/" + project + "/dev/1"
	events := history(t, c, updateID)
	program := scheduled(t, events, "RunProgram", "")
	shared := events[0].GetWorkflowExecutionStartedEventAttributes().GetTaskQueue()
	stackID := "stack/organization/" + project + "/dev"
	for _, mistaken := range []struct {
		id    string // of the workflow for which it was sealed
		input *commonpb.Payloads
	}{{updateID, program.GetInput()}, {stackID, firstAnswer(t, history(t, c, stackID))}} {
		p := newPuppet(t, c, mistaken.id)
		for _, header := range []*commonpb.Header{nil, program.GetHeader()} {
			if p.call(t, "CommitUpdate", &historypb.ActivityTaskScheduledEventAttributes{
				TaskQueue: shared, Input: mistaken.input,
				Header: header}) {
				t.Errorf("%s has an update committed by what is no commit", mistaken.id)
			}
		}
		p.end(t)
	}
	harness.Must(t, gate.Open(t.Context()))
	f.madeOnce(t, tool, project)
	_ = update() // which the next one has had recovered
}

// firstAnswer is the answer to the first update of a workflow.
func firstAnswer(t *testing.T, events []*historypb.HistoryEvent) *commonpb.Payloads {
	t.Helper()
	for _, e := range events {
		if a := e.GetWorkflowExecutionUpdateCompletedEventAttributes(); a.GetOutcome().GetSuccess() != nil {
			return a.GetOutcome().GetSuccess()
		}
	}
	t.Fatal("the workflow has answered nothing")
	return nil
}

// repeatedStep has a worker forget a running update, and then carry out once more what it has done.
func repeatedStep(t *testing.T, f *field) {
	const project = "twice"
	tool, gate, update := f.half(t, project)
	c := f.temporal(t)
	run := "run/organization/" + project + "/dev/1"
	steps := history(t, c, run)
	stack := newPuppet(t, c, "stack/organization/"+project+"/dev") // so that nobody recovers the update meanwhile
	p := newPuppet(t, c, run)
	for _, e := range steps {
		a := e.GetActivityTaskScheduledEventAttributes()
		if a.GetActivityType().GetName() != "Step" || !strings.HasPrefix(a.GetActivityId(), "create-") {
			continue
		}
		for _, activity := range []string{"Step", "EndSession", "Step"} {
			if p.call(t, activity, a) {
				t.Errorf("%s of %s is done for a workflow run that has not scheduled it", activity, a.GetActivityId())
			}
		}
	}
	harness.Must(t, gate.Open(t.Context()))
	stack.end(t)
	f.madeOnce(t, tool, project)
	_ = update() // which the next one has had recovered
}

// burntVersions starts workflows that are named like updates of a stack.
func burntVersions(t *testing.T, f *field) {
	const project = "burnt"
	tool := f.project(t, project, two, "FAKECLOUD_ENDPOINT="+f.cloud.URL())
	tool.Update(t, "up")
	c := f.temporal(t)
	ids := []string{"2", "9", "2147483645"}
	for i, version := range ids {
		ids[i] = "update/organization/" + project + "/dev/" + version
		shared := history(t, c, "update/organization/"+project+"/dev/1")[0].
			GetWorkflowExecutionStartedEventAttributes()
		for _, queue := range []string{"evil", shared.GetTaskQueue().GetName()} {
			_, err := c.ExecuteWorkflow(patient(t), client.StartWorkflowOptions{ID: ids[i], TaskQueue: queue,
				TypedSearchAttributes: temporal.NewSearchAttributes(
					temporal.NewSearchAttributeKeyKeyword("Org").ValueSet("organization"),
					temporal.NewSearchAttributeKeyKeyword("Project").ValueSet(project),
					temporal.NewSearchAttributeKeyKeyword("Stack").ValueSet("dev"))}, "Update")
			harness.Must(t, err)
			ended := new(serviceerror.NotFound) // by a worker of the queue, which has refused it
			if err := c.TerminateWorkflow(patient(t), ids[i], "", "attack"); err != nil && !errors.As(err, &ended) {
				t.Fatal(err)
			}
		}
	}
	harness.Eventually(t, "Temporal lists what was started", func() bool {
		return strings.Count(fmt.Sprint(workflows(t, c)), "update/organization/"+project+"/dev/2147483645") == 2
	})
	for range 2 {
		tool.Expect(t, harness.Changes{"same": 3}, "up")
	}
	if said := tool.Must(t, "stack", "history", "--json"); !strings.Contains(said, `"3"`) {
		t.Errorf("the versions are not those of the updates: %s", said)
	}
	f.removeAll(t, project)
}

// olderHead puts the head of an earlier version back, and nothing else.
func olderHead(t *testing.T, f *field) {
	const project = "older"
	tool := f.project(t, project, strings.Join(strings.Split(two, "\n")[:4], "\n"), "FAKECLOUD_ENDPOINT="+f.cloud.URL())
	tool.Update(t, "up")
	head := filepath.Join(f.objects(t), "stacks/organization", project, "dev/head.json")
	first, err := os.ReadFile(head)
	harness.Must(t, err)
	harness.Files{"scenario.yaml": two}.Write(t, tool.Dir)
	tool.Update(t, "up")
	second, err := os.ReadFile(head)
	harness.Must(t, err)
	f.offline(t, func(string) { harness.Must(t, os.WriteFile(head, first, 0o600)) })
	if end := tool.Run(t, "up", "--yes", "--skip-preview"); end.Code == 0 || !strings.Contains(end.Said(), "older than") {
		t.Errorf("an update over an older head ends with %d: %s", end.Code, end.Said())
	}
	f.offline(t, func(string) { harness.Must(t, os.WriteFile(head, second, 0o600)) })
	tool.Expect(t, harness.Changes{"same": 3}, "up")
	if made := f.removeAll(t, project); len(made) != 2 {
		t.Errorf("made are %v", made)
	}
}

// lostSave removes what a running update has saved.
func lostSave(t *testing.T, f *field) {
	const project = "lost"
	tool, gate, update := f.half(t, project)
	saved := map[string][]byte{}
	for _, path := range f.deltas(t, project) {
		data, err := os.ReadFile(path)
		harness.Must(t, err)
		saved[path] = data
		harness.Must(t, os.Remove(path))
	}
	harness.Must(t, gate.Open(t.Context()))
	id := "update/organization/" + project + "/dev/1"
	if err := f.temporal(t).GetWorkflow(patient(t), id, "").Get(patient(t), nil); err == nil {
		t.Error("an update commits without what it has saved")
	}
	for path, data := range saved {
		harness.Must(t, os.WriteFile(path, data, 0o600))
	}
	end := tool.Run(t, "up", "--yes", "--skip-preview")
	if first := update(); end.Code != 0 && !strings.Contains(end.Said(), "undecided") {
		t.Errorf("the update says %s, and the next %s", first.Said(), end.Said())
	}
	f.madeOnce(t, tool, project)
}
