//go:build unix

package pulumicli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// TestAQuotaBoundsOneOrganizationAtBothEdgesAndNoOther has two organizations on one service, of which one has a quota.
func TestAQuotaBoundsOneOrganizationAtBothEdgesAndNoOther(t *testing.T) {
	soaktest.Only(t)
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	s := serviceOf(t, h)
	cloud, env := harness.Cloud(t)
	operator := h.Deployctl(t.TempDir())
	in := func(organization string) (ours, stock *harness.Tool) {
		dir := t.TempDir()
		project.Write(t, dir)
		ours = h.Deployctl(dir, env, "DEPLOYCTL_ORGANIZATION="+organization)
		return ours, s.login(t, ours)
	}
	ours, stock := in("acme")
	others, _ := in("globex")
	const ask = "ask an operator of the service for more"
	refused := func(sentence string, tool *harness.Tool, args ...string) {
		t.Helper()
		end := tool.Run(t, args...)
		said := strings.Join(strings.Fields(end.Said()), " ")
		ours := filepath.Base(tool.Path) != "pulumi"
		if end.Code == 0 || ours && end.Code != 6 || !strings.Contains(said, sentence) || !strings.Contains(said, ask) {
			t.Errorf("%s %v ends with %d, and not with %q: %s", tool.Path, args, end.Code, sentence, end.Said())
		}
	}
	operator.Must(t, "quota", "set", "acme", "--stacks", "2", "--resources", "4", "--updates", "1", "--upload-bytes", "10")

	// Stacks.
	ours.Must(t, "stack", "init", "first")
	ours.Must(t, "config", "set", "password", secret, "--secret")
	said(t, stock, "", "stack", "init", "acme/second")
	said(t, stock, "", "config", "set", "password", secret, "--secret")
	const stacks = "the organization acme has 2 stacks, and its quota allows 2: remove one"
	refused(stacks, ours, "stack", "init", "third")
	refused(stacks, stock, "stack", "init", "acme/third")
	for _, stack := range []string{"first", "second", "third"} {
		others.Must(t, "stack", "init", stack)
	}
	refused(stacks, others, "stack", "rename", "acme/shop/third", "--stack", "third")

	// Uploads.
	onFirst := func(args ...string) []string { return append(args, "--stack", "first") }
	refused("its quota allows 10 bytes", ours, onFirst("up", "--yes", "--skip-preview")...)
	operator.Must(t, "quota", "set", "acme", "--upload-bytes", "1MiB")

	// Updates at a time: those of deployctl wait, and say why; those of the stock CLI wait for them.
	operator.Must(t, "quota", "set", "acme", "--updates", "0")
	held := ours.Begin(t, onFirst("refresh", "--yes", "--skip-preview")...)
	harness.Eventually(t, "an update of deployctl says why it waits", func() bool {
		return strings.Contains(ours.Must(t, "ps", "--json"), "runs 0 updates, and its quota allows 0 at a time")
	})
	operator.Must(t, "quota", "set", "acme", "--updates", "1")
	if end := held(); end.Code != 0 {
		t.Errorf("the update that has waited ends with %d: %s", end.Code, end.Said())
	}
	const waits = "the organization acme runs 1 update, and its quota allows 1 at a time"
	gate, err := cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Create})
	harness.Must(t, err)
	runs := ours.Begin(t, onFirst("up", "--yes", "--skip-preview")...)
	harness.Eventually(t, "the first update has its stack", func() bool {
		return strings.Contains(ours.Must(t, onFirst("stack", "history")...), "running")
	})
	second, secondSaid := begun(t, stock)
	harness.Eventually(t, "the stock CLI says why its update waits", func() bool {
		return strings.Contains(strings.Join(strings.Fields(secondSaid()), " "), waits)
	})
	others.Must(t, "config", "set", "password", secret, "--secret", "--stack", "first")
	others.Must(t, "preview", "--stack", "first")
	harness.Must(t, gate.Open(t.Context()))
	if end := runs(); end.Code != 0 {
		t.Errorf("the first ends with %d: %s", end.Code, end.Said())
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the second ends with %v: %s", err, secondSaid())
	}

	// Resources: there are more than four by now.
	harness.Edit(t, filepath.Join(ours.Dir, "Pulumi.yaml"), "size: 1", "size: 2")
	const resources = "resources, and its quota allows 4: destroy some first"
	harness.Eventually(t, "the count of the resources is not old any more", func() bool {
		end := ours.Run(t, onFirst("up", "--yes", "--skip-preview")...)
		return end.Code == 6 && strings.Contains(strings.Join(strings.Fields(end.Said()), " "), resources)
	})
	refused(resources, stock, with("up")...)
	ours.Must(t, onFirst("preview")...)
	said(t, stock, "", "preview", "--non-interactive")
	ours.Update(t, "destroy", "--stack", "first")
	said(t, stock, "3 deleted", with("destroy")...)

	// Whoever sees nothing of the organization does not see its quota, and no member sets it.
	var quotas []deployments.QuotaUse
	harness.Must(t, json.Unmarshal([]byte(operator.Must(t, "quota", "show", "acme", "--json")), &quotas))
	if len(quotas) != 1 || quotas[0].Used[deployments.LimitStacks] != 2 || quotas[0].Limits[deployments.LimitStacks] != 2 {
		t.Errorf("the quota is shown as %+v", quotas)
	}
	var status struct{ APIAddress string }
	harness.Must(t, json.Unmarshal([]byte(operator.Must(t, "dev", "status", "--json")), &status))
	member := func(organization string) *harness.Tool {
		token := strings.TrimSpace(operator.Must(t, "token", "create", "admin-of-"+organization, "--role", "admin",
			"--organization", organization))
		return h.Deployctl(t.TempDir(), "DEPLOYCTL_SERVER="+status.APIAddress, "DEPLOYCTL_TOKEN="+token)
	}
	if list := member("acme").Must(t, "quota", "show"); !strings.Contains(list, "acme") ||
		strings.Contains(list, "globex") {
		t.Errorf("an admin of acme sees\n%s", list)
	}
	rival := member("globex")
	for _, args := range [][]string{{"quota", "show", "acme"}, {"quota", "set", "globex", "--stacks", "9"}} {
		if end := rival.Run(t, args...); end.Code == 0 {
			t.Errorf("an admin of globex: %v is answered\n%s", args, end.Said())
		}
	}
}
