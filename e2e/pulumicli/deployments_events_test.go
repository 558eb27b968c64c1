//go:build unix

package pulumicli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// tellsDeployments has a deployment that succeeds and one whose update fails: a webhook is sent each of their stages
// once.
func tellsDeployments(t *testing.T, h *harness.Home, s service) {
	soaktest.Only(t)
	p, _, cloud := gitStack(t, h, s, "told")
	repository := serveRepository(t, plain, "")
	repository.commit(t, harness.Files{"Pulumi.told.yaml": "config:\n  shop:size: 1\n"}, "For this stack")
	r := newReceiver(t)
	args := []string{"--name", "deployments", "--url", r.URL + "/told"}
	for _, event := range []string{"queued", "started", "succeeded", "failed"} {
		args = append(args, "--event", "deployment_"+event)
	}
	hook(t, p, "stack", args...)
	from := []string{repository.url, "--git-branch", "main", "--env", cloud}
	said(t, p, "2 created", run("update", from...)...)
	repository.commit(t, harness.Files{"Pulumi.yaml": "name: shop\nruntime: yaml\nresources:\n" +
		"  web: {type: 'fake:index:Nothing'}\n"}, "A type that does not exist")
	failed(t, p, "Nothing", run("update", from...)...)

	want := []string{"1 update queued", "1 update started", "1 update succeeded", "2 update failed", "2 update queued",
		"2 update started"}
	told := func() (stages []string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range r.events {
			var d struct {
				Operation, Status, Error string
				Version                  int
			}
			harness.Must(t, json.Unmarshal([]byte(e.body), &d))
			if e.kind != "deployment" || (d.Error != "") != (d.Status == "failed") {
				t.Errorf("an event is %+v", e)
			}
			stages = append(stages, strconv.Itoa(d.Version)+" "+d.Operation+" "+d.Status)
		}
		slices.Sort(stages)
		return stages
	}
	harness.Eventually(t, "all stages are told", func() bool { return len(told()) >= len(want) })
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("it is told %q, want %q", got, want)
	}
}

// staysDestroyed has a user lose the right to deploy while their deployment destroys a stack that is to be removed. The
// stack stays, and the deployment says so where users look.
func staysDestroyed(t *testing.T, h *harness.Home, s service) {
	soaktest.Only(t)
	p, cloud, env := gitStack(t, h, s, "staying")
	repository := serveRepository(t, plain, "")
	repository.commit(t, harness.Files{"Pulumi.staying.yaml": "config:\n  shop:size: 1\n"}, "For this stack")
	said(t, p, "2 created", run("update", repository.url, "--git-branch", "main", "--env", env)...)
	r := newReceiver(t)
	hook(t, p, "stack", "--name", "ends", "--url", r.URL+"/staying", "--event", "deployment_succeeded", "--event",
		"deployment_failed")
	gate, err := cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Delete})
	harness.Must(t, err)
	ours := h.Deployctl(h.Dir)
	leaver := strings.TrimSpace(ours.Must(t, "token", "create", "leaver", "--role", "deployer"))
	variable, value, _ := strings.Cut(env, "=")
	body := fmt.Sprintf(`{"operation":"destroy","sourceContext":{"git":{"repoUrl":%q,"branch":"main"}},"operationContext":{
		"environmentVariables":{%q:%q},"options":{"deleteAfterDestroy":true}}}`, repository.url, variable, value)
	const path = "/api/stacks/organization/shop/staying/deployments"
	if status, text := s.post(t, path, body, "Authorization", "token "+leaver); status/100 != 2 {
		t.Fatalf("the deployment is answered %d: %s", status, text)
	}
	harness.Must(t, gate.Wait(t.Context()))
	ours.Must(t, "token", "rm", "leaver")
	harness.Must(t, gate.Open(t.Context()))
	const why = "the stack is destroyed, but not removed: the user who asked for the deployment may not deploy any more"
	if e := r.got(t, "/staying", `"status":"failed"`); !strings.Contains(e.body, why) {
		t.Errorf("the webhook is told %s", e.body)
	}
	r.got(t, "/staying", `"status":"succeeded"`)
	said(t, p, "failed", "deployment", "get", "2")
	said(t, p, "[Remove the stack]\nThe deployment has failed: "+why, "deployment", "log", "2", "--all")
	said(t, p, "", "stack", "rm", "--yes")
}
