//go:build unix

package pulumicli

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
)

// TestAKilledUpdateOfTheStockCLIFreesItsStackAndTheNextOneWorks has serve and a worker as processes of their own.
func TestAKilledUpdateOfTheStockCLIFreesItsStackAndTheNextOneWorks(t *testing.T) {
	h := harness.NewHome(t, harness.Binary())
	home, err := cluster.Prepare(t.Context(), h.Binary, h.Dir, h.Env)
	harness.Must(t, err)
	c, err := cluster.Start(t.Context(), h.Binary, h.Dir, append(h.Env, "DEPLOYCTL_PULUMI_LEASE=10s"), home,
		home.S3Endpoint, 1)
	harness.Must(t, err)
	t.Cleanup(c.Stop)
	s := service{c.Pulumi, c.Token}
	cloud, env := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	p := s.login(t, h.Deployctl(dir, env))
	p.Must(t, "stack", "init", "killed")
	p.Must(t, "config", "set", "password", secret, "--secret")
	gate, err := cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Create, Skip: 1})
	harness.Must(t, err)

	up := exec.Command(p.Path, with("up")...)
	up.Dir, up.Env, up.SysProcAttr = p.Dir, p.Env, &syscall.SysProcAttr{Setpgid: true}
	harness.Must(t, up.Start())
	harness.Must(t, gate.Wait(t.Context())) // one resource is there, and the next is being created
	harness.Must(t, syscall.Kill(-up.Process.Pid, syscall.SIGKILL))
	_ = up.Wait() // it was killed
	harness.Must(t, cloud.Lift(t.Context(), "gate"))

	harness.Eventually(t, "the lease has expired", func() bool { return !s.active(t, "killed") })
	state := p.Deployment(t)
	if len(state.Resources) < 2 || len(state.PendingOperations) != 1 {
		t.Errorf("the state has %d resources and %d pending operations", len(state.Resources),
			len(state.PendingOperations))
	}
	said(t, p, "created", with("up")...)
	said(t, p, "3 unchanged", "preview", "--non-interactive", "--expect-no-changes")
}
