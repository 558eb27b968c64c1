//go:build unix

package attack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// recorder keeps what the service and its workers have sealed for the workflows of a stack.
type recorder struct {
	*field
	c       client.Client
	starts  map[string]*historypb.WorkflowExecutionStartedEventAttributes // by workflow and run
	updates []recorded[*updatepb.Input]
	signals []recorded[*historypb.WorkflowExecutionSignaledEventAttributes]
	seen    map[string]bool
}

// recorded is what was sent to a workflow.
type recorded[T any] struct {
	workflow string
	sent     T
}

func (f *field) recorder(t *testing.T) *recorder {
	t.Helper()
	return &recorder{field: f, c: f.temporal(t), seen: map[string]bool{},
		starts: map[string]*historypb.WorkflowExecutionStartedEventAttributes{}}
}

// record reads all histories of a stack's workflows.
func (r *recorder) record(t *testing.T, project string) {
	t.Helper()
	found, err := r.c.ListWorkflow(patient(t), &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace,
		PageSize: 1000})
	harness.Must(t, err)
	for _, e := range found.GetExecutions() {
		id, run := e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId()
		if !strings.Contains(id, "/"+project+"/") {
			continue
		}
		for all := r.c.GetWorkflowHistory(patient(t), id, run, false,
			enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); all.HasNext(); {
			event, err := all.Next()
			harness.Must(t, err)
			if at := fmt.Sprint(id, run, event.GetEventId()); !r.seen[at] {
				r.seen[at] = true
				r.keep(id, run, event)
			}
		}
	}
}

func (r *recorder) keep(id, run string, e *historypb.HistoryEvent) {
	if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
		r.starts[id+" "+run] = a
	}
	if a := e.GetWorkflowExecutionUpdateAcceptedEventAttributes(); a != nil {
		r.updates = append(r.updates, recorded[*updatepb.Input]{id, a.GetAcceptedRequest().GetInput()})
	}
	if a := e.GetWorkflowExecutionSignaledEventAttributes(); a != nil {
		r.signals = append(r.signals, recorded[*historypb.WorkflowExecutionSignaledEventAttributes]{id, a})
	}
}

// begin starts a workflow with a recorded input, in the place of one that runs.
func (r *recorder) begin(
	t *testing.T, id string, a *historypb.WorkflowExecutionStartedEventAttributes,
) *workflowservice.StartWorkflowExecutionRequest {
	t.Helper()
	return &workflowservice.StartWorkflowExecutionRequest{
		Namespace: namespace, RequestId: fmt.Sprint("again ", len(r.seen), id), WorkflowId: id,
		WorkflowType: a.GetWorkflowType(), TaskQueue: &taskqueuepb.TaskQueue{Name: a.GetTaskQueue().GetName()},
		Input: a.GetInput(), Header: a.GetHeader(),
		WorkflowIdReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}
}

// play repeats all that is recorded: signals, then each update of a stack with each start of its workflow, then all
// other updates and starts. It waits for the end of what it has started.
func (r *recorder) play(t *testing.T) (repeated int) {
	t.Helper()
	api := r.c.WorkflowService()
	for i, s := range r.signals {
		_, _ = api.SignalWorkflowExecution(patient(t), &workflowservice.SignalWorkflowExecutionRequest{
			Namespace: namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: s.workflow},
			SignalName: s.sent.GetSignalName(), Input: s.sent.GetInput(), RequestId: fmt.Sprint("again ", len(r.seen), i),
		}) // its workflow may have ended
		repeated++
	}
	var ids []string
	for id := range r.starts {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for i, u := range r.updates {
		update := &workflowservice.UpdateWorkflowExecutionRequest{
			Namespace: namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: u.workflow},
			WaitPolicy: &updatepb.WaitPolicy{
				LifecycleStage: enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED},
			Request: &updatepb.Request{Input: u.sent,
				Meta: &updatepb.Meta{UpdateId: fmt.Sprint("again ", len(r.seen), i), Identity: "intruder"}},
		}
		at := slices.IndexFunc(ids, func(id string) bool { return strings.HasPrefix(id, u.workflow+" ") })
		if repeated++; at < 0 || !strings.HasPrefix(u.workflow, "stack/") {
			_, _ = api.UpdateWorkflowExecution(patient(t), update)
			continue
		}
		start := r.begin(t, u.workflow, r.starts[ids[at]])
		start.WorkflowIdConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
		_, _ = api.ExecuteMultiOperation(patient(t), together(start, update))
	}
	for _, id := range ids {
		workflow, _, _ := strings.Cut(id, " ")
		run, err := api.StartWorkflowExecution(patient(t), r.begin(t, workflow, r.starts[id]))
		if repeated++; err == nil && !strings.HasPrefix(workflow, "stack/") { // which goes on for a while
			_ = r.c.GetWorkflow(patient(t), workflow, run.GetRunId()).Get(patient(t), nil)
		}
	}
	return repeated
}

// together starts a workflow and updates it in one call.
func together(
	start *workflowservice.StartWorkflowExecutionRequest, update *workflowservice.UpdateWorkflowExecutionRequest,
) *workflowservice.ExecuteMultiOperationRequest {
	type operation = workflowservice.ExecuteMultiOperationRequest_Operation
	return &workflowservice.ExecuteMultiOperationRequest{Namespace: namespace, Operations: []*operation{
		{Operation: &workflowservice.ExecuteMultiOperationRequest_Operation_StartWorkflow{StartWorkflow: start}},
		{Operation: &workflowservice.ExecuteMultiOperationRequest_Operation_UpdateWorkflow{UpdateWorkflow: update}},
	}}
}

// world is what exists, and what the service says of a stack: its head, and its history.
func (f *field) world(t *testing.T, project string) string {
	t.Helper()
	var text strings.Builder
	objects, err := f.cloud.Objects(t.Context(), "")
	harness.Must(t, err)
	for _, o := range objects {
		fmt.Fprintln(&text, o.Kind, o.ID, o.Name)
	}
	dir := filepath.Join(f.objects(t), "stacks", "organization", project, "dev")
	for _, pattern := range []string{"head.json", "history/*", "checkpoints/*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		harness.Must(t, err)
		for _, path := range found {
			data, err := os.ReadFile(path)
			harness.Must(t, err)
			fmt.Fprintf(&text, "%s %d\n", path, len(data))
			if strings.HasSuffix(path, "head.json") { // with a nonce
				text.Write(data)
			}
		}
	}
	return text.String()
}

// repeatedPayloads records all that is sealed for a stack that is made, deployed, destroyed, removed and made again,
// and repeats all of it in each later state. Nothing that exists changes, and nothing that the service knows.
func repeatedPayloads(t *testing.T, f *field) {
	const program = "packages: [{name: fake, version: 0.1.0}]\nsteps: [{register: only, type: fake:index:Auto}]\n"
	tool, r := f.project(t, "repeated", program, "FAKECLOUD_ENDPOINT="+f.cloud.URL()), f.recorder(t)
	unchanged := func(state string) {
		t.Helper()
		r.record(t, "repeated")
		before := f.world(t, "repeated")
		if n := r.play(t); n < 5 {
			t.Errorf("%s: only %d payloads are repeated", state, n)
		}
		if after := f.world(t, "repeated"); after != before {
			t.Errorf("%s: repeated payloads have changed\n%s\nto\n%s", state, before, after)
		}
	}
	tool.Must(t, "preview", "--non-interactive")
	tool.Update(t, "up")
	unchanged("deployed")
	tool.Update(t, "destroy")
	if *soaktest.Full {
		unchanged("destroyed")
	}
	r.record(t, "repeated")
	tool.Must(t, "stack", "rm", "--yes")
	if *soaktest.Full {
		unchanged("removed")
	}
	tool.Must(t, "stack", "init", "dev")
	unchanged("made again")
	tool.Update(t, "up")
	unchanged("deployed again")
	tool.Update(t, "destroy")
	tool.Must(t, "stack", "rm", "--yes")
}

// restartedUpdate starts the Run of an update, and then the update itself, once more while a resource is being made.
// Nothing is made twice, and nothing that was made is forgotten.
func restartedUpdate(t *testing.T, f *field) {
	for _, kind := range []string{"run", "update"} {
		project := "restarted-" + kind
		tool, r := f.project(t, project, `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: first, type: fake:index:Auto}
  - {register: second, type: fake:index:Auto, properties: {links: ["${first.arn}"]}}
`, "FAKECLOUD_ENDPOINT="+f.cloud.URL()), f.recorder(t)
		gate, err := f.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "restarted", Op: fakecloud.Create,
			Object: "second", At: fakecloud.After, Times: 1})
		harness.Must(t, err)
		update := tool.Begin(t, "up", "--yes", "--skip-preview")
		harness.Must(t, gate.Wait(patient(t)))
		r.record(t, project)
		for id, started := range r.starts {
			workflow, _, _ := strings.Cut(id, " ")
			if strings.HasPrefix(workflow, kind+"/") {
				again := r.begin(t, workflow, started)
				again.WorkflowIdConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING
				run, err := r.c.WorkflowService().StartWorkflowExecution(patient(t), again)
				harness.Must(t, err)
				_ = r.c.GetWorkflow(patient(t), workflow, run.GetRunId()).Get(patient(t), nil)
			}
		}
		harness.Must(t, gate.Open(t.Context()))
		end := update()
		again := tool.Run(t, "up", "--yes", "--skip-preview") // goes on, or says that a person has to look
		if again.Code != 0 && !strings.Contains(again.Said(), "an attempt to create it is undecided") {
			t.Errorf("%s: the update says %s, and the next %s", kind, end.Said(), again.Said())
		}
		if made := f.removeAll(t, project); len(made) != 2 {
			t.Errorf("%s: made are %v; the update said %s", kind, made, end.Said())
		}
		if state := tool.Must(t, "stack", "export"); strings.Count(state, `::first"`) == 0 ||
			strings.Count(state, `::second"`) == 0 {
			t.Errorf("%s: the state has forgotten what was made: %s", kind, state)
		}
	}
}

// removeAll removes what a project's resources are in the cloud, and gives their names.
func (f *field) removeAll(t *testing.T, project string) (names []string) {
	t.Helper()
	all, err := f.cloud.Objects(t.Context(), "")
	harness.Must(t, err)
	for _, o := range all {
		if strings.Contains(o.Owner, "::"+project+"::") {
			names = append(names, o.Name)
			harness.Must(t, f.cloud.Remove(t.Context(), o.Kind, o.ID))
		}
	}
	return names
}

// plant puts copies of all objects of the bucket, and text that nobody sealed, where nothing was, and returns what
// removes them.
func plant(t *testing.T, bucket string) (uproot func()) {
	t.Helper()
	var planted []string
	put := func(path string, data []byte) {
		t.Helper()
		if _, err := os.Lstat(path); err == nil {
			return
		}
		harness.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		harness.Must(t, os.WriteFile(path, data, 0o600))
		planted = append(planted, path)
	}
	for _, path := range stored(t, bucket) {
		data, err := os.ReadFile(filepath.Join(bucket, path))
		harness.Must(t, err)
		put(filepath.Join(bucket, path+"-2"), data) // beside it
		put(filepath.Join(bucket, path+"-3"), []byte(`{"next": 1000, "version": 3, "deployment": {}}`))
		for from, to := range map[string]string{"/precious/": "/planted/", "organization/": "planted/"} {
			if moved := strings.Replace(path, from, to, 1); moved != path {
				put(filepath.Join(bucket, moved), data) // in the place of another stack, or organization
			}
		}
	}
	stack := filepath.Join(bucket, "stacks/organization/precious/dev")
	put(filepath.Join(stack, "checkpoints/999.json.zst"), []byte(`{"version":3,"deployment":{}}`))
	put(filepath.Join(stack, "history/2147482648"), []byte(`{"kind":"destroy"}`))
	put(filepath.Join(bucket, "removed/organization/fresh/dev.json"), []byte(`{"next":1}`))
	put(filepath.Join(bucket, "organizations/organization"), nil)
	return func() {
		for _, path := range planted {
			if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) { // the service removes tokens that have expired
				harness.Must(t, err)
			}
		}
	}
}

// stored are the objects of the bucket.
func stored(t *testing.T, bucket string) (paths []string) {
	t.Helper()
	harness.Must(t, filepath.WalkDir(bucket, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		path, err = filepath.Rel(bucket, path)
		paths = append(paths, path)
		return err
	}))
	return paths
}

// newObjects puts an object of each kind where none was. None is believed: a stack, a version and a token that nobody
// made are not there, and where that is not known the service says so.
func newObjects(t *testing.T, f *field) {
	f.victim.Must(t, "member", "add", "planter", "--role", "viewer", "--organization", "organization")
	f.holder(t, "planted", "--role", "viewer", "--organization", "organization")
	before := f.victim.Must(t, "stack", "export")
	fresh := f.project(t, "fresh", "steps: []\n")
	fresh.Must(t, "stack", "rm", "--yes")
	var uproot func()
	f.offline(t, func(bucket string) {
		harness.Must(t, os.RemoveAll(filepath.Join(bucket, "removed/organization/fresh")))
		uproot = plant(t, bucket)
	})
	for what, args := range map[string][]string{
		"a stack that was copied is exported":  {"stack", "export", "--stack", "organization/planted/dev"},
		"a version that nobody made is shown":  {"stack", "export", "--version", "999"},
		"a version that nobody made is put in": {"stack", "restore", "999", "--yes"},
		"a name that is said to be used is":    {"stack", "init", "organization/fresh/dev"},
		"an update runs where that is unknown": {"up", "--yes", "--skip-preview", "--on-busy", "fail"},
	} {
		if end := f.victim.Run(t, args...); end.Code == 0 {
			t.Errorf("%s: %s", what, end.Said())
		}
	}
	if said := f.victim.Run(t, "stack", "history").Said(); strings.Contains(said, "999 ") &&
		!strings.Contains(said, "damaged") {
		t.Errorf("the history shows an update that was none: %s", said)
	}
	f.offline(t, func(string) { uproot() })
	f.dial(t)
	if after := f.victim.Must(t, "stack", "export"); before != after {
		t.Errorf("the state has changed from %s to %s", before, after)
	}
	f.victim.Must(t, "token", "rm", "planted")
}
