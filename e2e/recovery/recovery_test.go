//go:build unix

// Package recovery ends the workflows of updates from outside, as an operator of Temporal can, in the middle of what
// they do: the next update is accepted at once, and what was under way is neither forgotten nor made twice.
package recovery

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// project has three layers. Of the first, which is made but not saved when the second is held, only the answer told the
// id.
var project = harness.Files{
	"Pulumi.yaml": "name: recovered\nruntime: scenario\n",
	"scenario.yaml": `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: server-1, type: fake:index:Server}
  - {register: named-1, type: fake:index:Named, properties: {name: "one", links: ["${server-1.arn}"]}}
  - {register: auto-1, type: fake:index:Auto, properties: {links: ["${server-1.arn}"]}}
  - {register: named-2, type: fake:index:Named,
     properties: {name: "two", links: ["${named-1.arn}", "${auto-1.arn}", "${server-1.arn}"]}}
  - {register: auto-2, type: fake:index:Auto,
     properties: {links: ["${named-1.arn}", "${auto-1.arn}", "${server-1.arn}"]}}
`,
}

// resources is how many of them have an effect in the cloud.
const resources = 5

// findable tells how a create of which nobody knows the end is found again.
const findable = `{"fake:index:Named": {"read": "property:name"}, "fake:index:Auto": {"read": "property:name"}}`

func TestAnUpdateWhoseWorkflowIsTerminatedIsGoneOnWithByTheNext(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	temporal := dial(t, h)
	row := 0
	for _, workflow := range []string{"update", "run"} {
		for _, object := range []string{"named-2", "auto-1"} {
			for _, at := range []fakecloud.Moment{fakecloud.Before, fakecloud.After} {
				const others = 8 // which leaves the first one
				this := row
				row++
				t.Run(fmt.Sprintf("the %s, %s the effect on %s", workflow, at, object), func(t *testing.T) {
					soaktest.ButFor(t, others, this)
					t.Parallel()
					stack := strings.ToLower(fmt.Sprintf("%s-%s-%s", workflow, object, at))
					said := interfered(t, h, stack, fakecloud.Fault{Name: "gate", Op: fakecloud.Create, Object: object,
						At: at, Times: 1}, func() {
						id := workflow + "/organization/recovered/" + stack + "/1"
						harness.Must(t, temporal.TerminateWorkflow(t.Context(), id, "", "by hand"))
					})
					if !strings.Contains(said, "ended from outside") {
						t.Errorf("the update that was ended says\n%s", said)
					}
				})
			}
		}
	}
}

// interfered begins an update, interferes with it while the fault holds it, and has the next update go on with it. It
// gives what the first one said.
func interfered(t *testing.T, h *harness.Home, stack string, fault fakecloud.Fault, interfere func()) string {
	t.Helper()
	cloud, env := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	tool := h.Deployctl(dir, env)
	tool.Must(t, "stack", "init", stack)
	tool.Must(t, "config", "set", "deployctl:settle", findable)
	gate, err := cloud.SetGate(t.Context(), fault)
	harness.Must(t, err)

	first := begin(t, tool, "up", "--yes", "--skip-preview")
	harness.Must(t, gate.Wait(t.Context()))
	interfere()
	next := begin(t, tool, "up", "--yes", "--skip-preview", "--on-unknown", "fail")
	harness.Must(t, gate.WaitEmpty(t.Context())) // the provider that waits there is ended
	harness.Must(t, gate.Open(t.Context()))
	ended := first()
	if !strings.Contains(ended, "exit status") {
		t.Errorf("the update that was ended says\n%s", ended)
	}
	if said := next(); strings.Contains(said, "exit status") {
		t.Fatalf("the next update says\n%s", said)
	}
	asIfNothingHappened(t, tool, cloud)
	return ended
}

func TestAnUpdateWhoseStackIsTerminatedTooIsRecoveredByHandAndItsStateRestored(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	temporal := dial(t, h)
	cloud, env := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	tool := h.Deployctl(dir, env)
	tool.Must(t, "stack", "init", "by-hand")
	tool.Must(t, "config", "set", "deployctl:settle", findable)
	if said := tool.Must(t, "stack", "recover"); !strings.Contains(said, "nothing to recover") {
		t.Errorf("before anything it says\n%s", said)
	}
	gate, err := cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Create, Object: "named-2",
		At: fakecloud.After, Times: 1})
	harness.Must(t, err)
	first := begin(t, tool, "up", "--yes", "--skip-preview")
	harness.Must(t, gate.Wait(t.Context()))
	const id = "organization/recovered/by-hand"
	for _, args := range [][]string{{"stack", "recover"}, {"stack", "restore", "1", "--yes"}} {
		if said := begin(t, tool, args...)(); !strings.Contains(said, "exit status 4") {
			t.Errorf("while the update runs, %v says\n%s", args, said)
		}
	}
	for _, workflow := range []string{"stack/" + id, "update/" + id + "/1"} {
		harness.Must(t, temporal.TerminateWorkflow(t.Context(), workflow, "", "by hand"))
	}
	recovered := begin(t, tool, "stack", "recover")
	harness.Must(t, gate.WaitEmpty(t.Context())) // the provider that waits there is ended
	harness.Must(t, gate.Open(t.Context()))
	said := recovered()
	if !strings.Contains(said, id+"/1 has ended failed") || !strings.Contains(said, "creating named-2") {
		t.Errorf("it says\n%s", said)
	}
	if said := first(); !strings.Contains(said, "ended from outside") {
		t.Errorf("the update that was ended says\n%s", said)
	}
	tool.Must(t, "up", "--yes", "--skip-preview", "--on-unknown", "fail")
	asIfNothingHappened(t, tool, cloud)
	tool.Must(t, "stack", "restore", "1", "--yes")
	if pending := tool.Deployment(t).PendingOperations; len(pending) == 0 {
		t.Error("version 1 is restored without what may have happened")
	}
	tool.Must(t, "stack", "restore", "2", "--yes")
	asIfNothingHappened(t, tool, cloud)
	if said := tool.Must(t, "stack", "history"); strings.Count(said, "restore") != 2 ||
		!strings.Contains(said, "version 2 again") {
		t.Errorf("the history is\n%s", said)
	}
	if said := tool.Must(t, "attach", "4"); strings.Contains(said, "failed") {
		t.Errorf("a version that was restored is shown as\n%s", said)
	}
}

// begin starts a command; what it gives waits for its end and tells what it said, and how it ended if not well.
func begin(t *testing.T, tool *harness.Tool, args ...string) (end func() string) {
	t.Helper()
	ended := make(chan string, 1)
	cmd := exec.CommandContext(t.Context(), tool.Path, args...)
	cmd.Dir, cmd.Env = tool.Dir, tool.Env
	go func() {
		said, err := cmd.CombinedOutput()
		if err != nil {
			said = fmt.Append(said, err)
		}
		ended <- string(said)
	}()
	return func() string {
		t.Helper()
		return waittest.For(t, fmt.Sprintf("%v ends", args), ended)
	}
}

// asIfNothingHappened makes sure that everything was made once and is known.
func asIfNothingHappened(t *testing.T, tool *harness.Tool, cloud *fakecloud.Process) {
	t.Helper()
	double, err := cloud.Duplicates(t.Context())
	harness.Must(t, err)
	if len(double) > 0 {
		t.Errorf("made twice: %v", double)
	}
	found, err := cloud.Objects(t.Context(), "")
	harness.Must(t, err)
	inCloud, inState := map[string]string{}, map[string]string{}
	for _, o := range found {
		inCloud[o.Owner] = o.ID
	}
	state := tool.Deployment(t)
	for _, r := range state.Resources {
		if strings.HasPrefix(string(r.Type), "fake:") {
			inState[string(r.URN)] = string(r.ID)
		}
	}
	if len(found) != resources || !maps.Equal(inCloud, inState) {
		t.Errorf("the cloud holds %v, the state %v", inCloud, inState)
	}
	if len(state.PendingOperations) > 0 || state.Metadata.IntegrityErrorMetadata != nil {
		t.Errorf("pending: %v; broken: %v", state.PendingOperations, state.Metadata.IntegrityErrorMetadata)
	}
	tool.Expect(t, harness.Changes{"same": resources + 1}, "up")
}

// dial connects to the service's Temporal, as `temporal workflow terminate` does.
func dial(t *testing.T, h *harness.Home) client.Client {
	t.Helper()
	var status cluster.Temporal
	harness.Must(t, json.Unmarshal([]byte(h.Deployctl(h.Dir).Must(t, "dev", "status", "--json")), &status))
	c, err := status.Dial()
	harness.Must(t, err)
	t.Cleanup(c.Close)
	return c
}
