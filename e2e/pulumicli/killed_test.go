//go:build unix

package pulumicli

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// findable are the rules by which creates of the project are found.
const findable = `{"fake:index:Auto": {"read": "property:name"}}`

// served is a service in parts, serve and a worker being processes of their own, with a short lease.
type served struct {
	service
	home    *harness.Home
	cluster *cluster.Cluster
}

func newServed(t *testing.T) served {
	h := harness.NewHome(t, harness.Binary())
	home, err := cluster.Prepare(t.Context(), h.Binary, h.Dir, h.Env)
	harness.Must(t, err)
	c, err := cluster.Start(t.Context(), h.Binary, h.Dir, append(h.Env, "DEPLOYCTL_PULUMI_LEASE=40s"), home,
		home.S3Endpoint, 1)
	harness.Must(t, err)
	t.Cleanup(c.Stop)
	h.Env = c.Env // of its clients
	return served{service{c.Pulumi, c.Token}, h, c}
}

// victim is a stack of both tools, on a cloud of its own, whose provider has its configuration in the state.
type victim struct {
	served
	name   string
	cloud  *fakecloud.Process
	pulumi *harness.Tool
	ours   *harness.Tool
}

func (s served) newVictim(t *testing.T, name string, init ...string) *victim {
	v := &victim{served: s, name: name}
	v.cloud, _ = harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	v.ours = s.home.Deployctl(dir)
	v.pulumi = s.login(t, v.ours)
	v.pulumi.Must(t, append([]string{"stack", "init", name}, init...)...)
	v.pulumi.Must(t, "config", "set", "password", secret, "--secret")
	v.pulumi.Must(t, "config", "set", "fake:endpoint", v.cloud.URL())
	return v
}

// killed starts an update and kills it when the second request of an operation has had its effect and was not
// answered.
func (v *victim) killed(t *testing.T, op fakecloud.Op, command string) {
	t.Helper()
	gate, err := v.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: op, At: fakecloud.After, Skip: 1})
	harness.Must(t, err)
	up := exec.Command(v.pulumi.Path, with(command)...)
	up.Dir, up.Env, up.SysProcAttr = v.pulumi.Dir, v.pulumi.Env, &syscall.SysProcAttr{Setpgid: true}
	var said bytes.Buffer
	up.Stdout, up.Stderr = &said, &said
	harness.Must(t, up.Start())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		_ = up.Wait() // it is killed, or ends too early
	}()
	if err := gate.Wait(ctx); err != nil {
		t.Fatalf("it ends before it is killed: %v\n%s", err, &said)
	}
	harness.Must(t, syscall.Kill(-up.Process.Pid, syscall.SIGKILL))
	<-ctx.Done()
	harness.Must(t, v.cloud.Lift(t.Context(), "gate"))
}

// settled waits until the stack is free again with so many pending operations. Between the end of the lease and the
// update that settles what it left, the stack is free, too.
func (v *victim) settled(t *testing.T, pending int) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("the stack is free and has %d pending operations", pending), func() bool {
		return !v.active(t, v.name) && len(v.pulumi.Deployment(t).PendingOperations) == pending
	})
}

// clean runs a command of the stock CLI that succeeds without a word about pending operations.
func (v *victim) clean(t *testing.T, want string, args ...string) {
	t.Helper()
	end := v.pulumi.Run(t, args...)
	if said := end.Stdout + end.Stderr; end.Code != 0 || !strings.Contains(said, want) ||
		strings.Contains(said, "pending") {
		t.Errorf("%s ends with %d:\n%s", strings.Join(args, " "), end.Code, end.Said())
	}
}

// once makes sure that nothing was made twice.
func (v *victim) once(t *testing.T) {
	t.Helper()
	if twice, err := v.cloud.Duplicates(t.Context()); err != nil || len(twice) > 0 {
		t.Errorf("made twice: %v %v", twice, err)
	}
}

func TestAKilledUpdateOfTheStockCLIIsSettledAndTheNextOneWorks(t *testing.T) {
	s := newServed(t)
	t.Run("a create is adopted", func(t *testing.T) { t.Parallel(); adopted(t, s) })
	t.Run("the next update comes before the lease expires", func(t *testing.T) { t.Parallel(); follows(t, s) })
	t.Run("a delete is found out", func(t *testing.T) { t.Parallel(); deleted(t, s) })
	t.Run("a cancel settles at once", func(t *testing.T) { t.Parallel(); cancelled(t, s) })
	t.Run("what nobody can tell is answered", func(t *testing.T) { t.Parallel(); answered(t, s) })
	t.Run("without the key of its secrets the service says so", func(t *testing.T) { t.Parallel(); keyless(t, s) })
}

func adopted(t *testing.T, s served) {
	v := s.newVictim(t, "adopted")
	v.pulumi.Must(t, "config", "set", "deployctl:settle", findable)
	v.killed(t, fakecloud.Create, "up")
	v.settled(t, 0)
	v.clean(t, "3 unchanged", "preview", "--non-interactive")
	v.clean(t, "3 unchanged", with("up")...)
	v.once(t)
	said(t, v.pulumi, "Settles what update 1 left pending", "stack", "history")
	v.clean(t, "3 deleted", with("destroy")...)
}

// follows waits for the stack of a dead client, and for what settles it.
func follows(t *testing.T, s served) {
	soaktest.Only(t)
	v := s.newVictim(t, "follows")
	v.pulumi.Must(t, "config", "set", "deployctl:settle", findable)
	v.killed(t, fakecloud.Create, "up")
	if !v.active(t, v.name) {
		t.Error("the lease has expired already")
	}
	v.clean(t, "3 unchanged", with("up")...)
	v.once(t)
	if state := v.pulumi.Deployment(t); len(state.PendingOperations) != 0 {
		t.Errorf("pending are %v", state.PendingOperations)
	}
}

func deleted(t *testing.T, s served) {
	soaktest.Only(t)
	v := s.newVictim(t, "deleted")
	v.ours.Must(t, "up", "--yes", "--skip-preview", "--stack", "organization/shop/deleted")
	v.killed(t, fakecloud.Delete, "destroy")
	v.settled(t, 0)
	v.clean(t, "2 created", with("up")...)
	v.clean(t, "3 deleted", with("destroy")...)
}

func cancelled(t *testing.T, s served) {
	soaktest.Only(t)
	v := s.newVictim(t, "cancelled")
	v.pulumi.Must(t, "config", "set", "deployctl:settle", findable)
	v.killed(t, fakecloud.Create, "up")
	said(t, v.pulumi, "has been canceled", "cancel", "--yes")
	v.clean(t, "3 unchanged", with("up")...)
	v.once(t)
}

func keyless(t *testing.T, s served) {
	soaktest.Only(t)
	v := s.newVictim(t, "keyless", "--secrets-provider", "passphrase")
	v.killed(t, fakecloud.Create, "up")
	v.settled(t, 1)
	history := v.ours.Must(t, "stack", "history", "--json", "--stack", "organization/shop/keyless")
	if !strings.Contains(history, "has no key of the stack's secrets provider (passphrase)") {
		t.Errorf("the history says\n%s", history)
	}
}

func answered(t *testing.T, s served) {
	soaktest.Only(t)
	v := s.newVictim(t, "answered")
	v.killed(t, fakecloud.Create, "up")
	v.settled(t, 1)
	open := v.pulumi.Deployment(t).PendingOperations[0].Resource.URN
	stack := []string{"--stack", "organization/shop/answered"}
	if said := v.ours.Must(t, append([]string{"stack"}, stack...)...); !strings.Contains(said,
		"pending: creating "+open.Name()) {
		t.Errorf("the stack says\n%s", said)
	}
	objects, err := v.cloud.Objects(t.Context(), "")
	harness.Must(t, err)
	for _, o := range objects {
		if o.Owner == string(open) {
			said(t, v.ours, "taken over", append([]string{"resolve", string(open), "--created", o.ID}, stack...)...)
		}
	}
	v.clean(t, "3 unchanged", with("up")...)
	v.once(t)
}
