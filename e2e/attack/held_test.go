//go:build unix

package attack

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
)

// hold starts a refresh of the victim's stack and stops it in the middle of reading a resource. What it returns lets it
// go on and waits for its good end.
func (f *field) hold(t *testing.T) (release func(*testing.T), err error) {
	t.Helper()
	gate, err := f.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "hold", Op: fakecloud.Read, At: fakecloud.Before,
		Times: 1})
	if err != nil {
		return nil, err
	}
	refresh := exec.Command(f.victim.Path, "refresh", "--yes", "--skip-preview")
	refresh.Dir, refresh.Env = f.victim.Dir, f.victim.Env
	var said strings.Builder
	refresh.Stdout, refresh.Stderr = &said, &said
	harness.Must(t, refresh.Start())
	harness.Must(t, gate.Wait(patient(t)))
	return func(t *testing.T) {
		t.Helper()
		harness.Must(t, gate.Open(t.Context()))
		if err := refresh.Wait(); err != nil {
			t.Errorf("the update that was attacked ends with %v: %s", err, said.String())
		}
	}, nil
}

// running is the id of the victim's running workflow of a kind, "update" or "run".
func (f *field) running(t *testing.T, kind string) string {
	t.Helper()
	found, err := f.temporal(t).ListWorkflow(patient(t), &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: namespace, Query: "ExecutionStatus='Running'",
	})
	harness.Must(t, err)
	var ids []string
	for _, e := range found.GetExecutions() {
		if id := e.GetExecution().GetWorkflowId(); strings.HasPrefix(id, kind+"/organization/precious/dev/") {
			ids = append(ids, id)
		}
	}
	if len(ids) != 1 {
		slices.Sort(ids)
		t.Fatalf("of the victim's workflows there run %v", ids)
	}
	return ids[0]
}

// refusals counts the signals to a workflow that the worker has logged as refused.
func (f *field) refusals(t *testing.T, id string) (n int) {
	t.Helper()
	for line := range strings.Lines(f.logs(t)) {
		if strings.Contains(line, "Corrupted signal") && strings.Contains(line, "so it is refused") &&
			strings.Contains(line, id) {
			n++
		}
	}
	return n
}

// refuses waits until the worker has refused a signal to one of the workflows, after those that it had refused before.
func (f *field) refuses(t *testing.T, before int, ids ...string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("a signal to one of %v is refused", ids), func() bool {
		n := 0
		for _, id := range ids {
			n += f.refusals(t, id)
		}
		return n > before
	})
}
