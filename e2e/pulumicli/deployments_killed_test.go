//go:build unix

package pulumicli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// inParts starts a service in parts, whose workers may connect to the servers of the test.
func inParts(t *testing.T, workers int) (*harness.Home, *cluster.Cluster, service) {
	t.Helper()
	h := harness.NewHome(t, harness.Binary())
	home, err := cluster.Prepare(t.Context(), h.Binary, h.Dir, h.Env)
	harness.Must(t, err)
	c, err := cluster.Start(t.Context(), h.Binary, h.Dir, append(h.Env, "DEPLOYCTL_DEPLOYMENTS_PRIVATE_HOSTS=127.0.0.1",
		"DEPLOYCTL_WEBHOOKS_PRIVATE_HOSTS=127.0.0.1"), home, home.S3Endpoint, workers)
	harness.Must(t, err)
	t.Cleanup(c.Stop)
	return h, c, service{c.Pulumi, c.Token}
}

// TestADeploymentGoesOnWhenItsWorkerAndTheServiceAreKilled has serve and two workers as processes of their own. The
// worker is killed while a command before the operation runs: the other one fetches the repository again.
func TestADeploymentGoesOnWhenItsWorkerAndTheServiceAreKilled(t *testing.T) {
	soaktest.Only(t)
	h, c, s := inParts(t, 2)
	_, cloud := harness.Cloud(t)
	dir := t.TempDir()
	plain.Write(t, dir)
	p := s.login(t, h.Deployctl(dir, cloud))
	p.Must(t, "stack", "init", "git")
	repository := serveRepository(t, plain, gitToken)
	begun := filepath.Join(t.TempDir(), "begun")
	p.Must(t, "deployment", "run", "update", repository.url, "--git-branch", "main", "--env", cloud,
		"--git-auth-access-token", gitToken, "--pre-run-command",
		fmt.Sprintf("if mkdir %s 2>/dev/null; then sleep 1234; fi; echo repeated", begun))
	harness.Eventually(t, "the command has begun", func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
	for _, w := range c.Workers {
		if below, err := cluster.Below(w.PID(), "sleep 1234"); err == nil && len(below) > 0 {
			harness.Must(t, w.Kill())
			break
		}
	}
	harness.Must(t, c.Serve.Kill())
	harness.Must(t, c.Serve.Start())
	harness.Eventually(t, "the service answers", func() bool { return p.Run(t, "deployment", "get", "1").Code == 0 })
	harness.Eventually(t, "the deployment has succeeded", func() bool {
		return strings.Contains(p.Must(t, "deployment", "get", "1"), "succeeded")
	})
	said(t, p, "repeated", "deployment", "log", "1", "--all")
	said(t, p, "2 unchanged", "preview", "--non-interactive", "--expect-no-changes")
	drift := []string{repository.url, "--git-branch", "main", "--env", cloud, "--git-auth-access-token", gitToken}
	said(t, p, "same 2", run("detect-drift", drift...)...)
	said(t, p, "", "stack", "drift", "status")
	said(t, p, "same 2", run("remediate-drift", drift...)...)
}

// TestADestroyedStackIsRemovedThoughItsWorkerDies kills the only worker when it tells a webhook the end of the destroy:
// the removal has not begun yet.
func TestADestroyedStackIsRemovedThoughItsWorkerDies(t *testing.T) {
	soaktest.Only(t)
	h, c, s := inParts(t, 1)
	_, cloud := harness.Cloud(t)
	dir := t.TempDir()
	plain.Write(t, dir)
	p := s.login(t, h.Deployctl(dir, cloud))
	p.Must(t, "stack", "init", "git")
	repository := serveRepository(t, plain, "")
	said(t, p, "2 created", run("update", repository.url, "--git-branch", "main", "--env", cloud)...)
	r := newReceiver(t)
	killed := r.killsAt(t, c, `"operation":"destroy"`)
	hook(t, p, "stack", "--name", "ends", "--url", r.URL, "--event", "deployment_succeeded")
	const path = "/api/stacks/organization/shop/git/deployments"
	variable, value, _ := strings.Cut(cloud, "=")
	body := fmt.Sprintf(`{"operation":"destroy","sourceContext":{"git":{"repoUrl":%q,"branch":"main"}},"operationContext":{
		"environmentVariables":{%q:%q},"options":{"deleteAfterDestroy":true}}}`, repository.url, variable, value)
	if status, text := s.post(t, path, body, "Authorization", "token "+s.token); status/100 != 2 {
		t.Fatalf("the deployment is answered %d: %s", status, text)
	}
	<-killed
	harness.Must(t, c.Workers[0].Start())
	harness.Eventually(t, "the stack is removed", func() bool {
		return !strings.Contains(p.Must(t, "stack", "ls", "--all"), "git")
	})
}

// TestADestroyedStackStaysWhenItsUserMayNotDeployAnyMore has a user lose the right to deploy while their deployment
// destroys a stack that is to be removed. The stack stays, and the deployment says so where users look.
func TestADestroyedStackStaysWhenItsUserMayNotDeployAnyMore(t *testing.T) {
	soaktest.Only(t)
	h, c, s := inParts(t, 1)
	p, cloud, env := gitStack(t, h, s, "staying")
	repository := serveRepository(t, plain, "")
	repository.commit(t, harness.Files{"Pulumi.staying.yaml": "config:\n  shop:size: 1\n"}, "For this stack")
	said(t, p, "2 created", run("update", repository.url, "--git-branch", "main", "--env", env)...)
	r := newReceiver(t)
	hook(t, p, "stack", "--name", "ends", "--url", r.URL+"/staying", "--event", "deployment_succeeded", "--event",
		"deployment_failed")
	gate, err := cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Delete})
	harness.Must(t, err)
	ours := h.Deployctl(h.Dir, c.Env...)
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
