//go:build unix

// Package pulumicli drives deployctl's Pulumi Service API with the real stock CLI.
package pulumicli

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// secret is the configuration's.
const secret = "the-password-in-the-configuration"

var project = harness.Files{"Pulumi.yaml": `
name: shop
runtime: yaml
config:
  password: {type: string, secret: true}
resources:
  web:
    type: fake:index:Auto
    properties: {size: 1, secretText: "${password}"}
  db:
    type: fake:index:Auto
    properties: {links: ["${web.arn}"]}
outputs:
  arn: ${db.arn}
  password: ${password}
`}

// service is the Pulumi Service API of a home's embedded service.
type service struct{ address, token string }

func serviceOf(t *testing.T, h *harness.Home) service {
	t.Helper()
	var status struct{ PulumiAddress, PulumiTokenFile string }
	harness.Must(t, json.Unmarshal([]byte(h.Deployctl(h.Dir).Must(t, "dev", "status", "--json")), &status))
	token, err := os.ReadFile(status.PulumiTokenFile)
	harness.Must(t, err)
	return service{"http://" + status.PulumiAddress, strings.TrimSpace(string(token))}
}

// stack asks the service about a stack of the project.
func (s service) active(t *testing.T, stack string) (operation bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.address+"/api/stacks/organization/shop/"+stack,
		nil)
	harness.Must(t, err)
	r.Header.Set("Authorization", "token "+s.token)
	answer, err := http.DefaultClient.Do(r)
	harness.Must(t, err)
	defer func() { _ = answer.Body.Close() }()
	var info struct{ CurrentOperation *struct{} }
	harness.Must(t, json.NewDecoder(answer.Body).Decode(&info))
	return info.CurrentOperation != nil
}

// login returns the stock CLI in a project, logged in to the service, with the fake cloud's provider.
func (s service) login(t *testing.T, project *harness.Tool) *harness.Tool {
	t.Helper()
	peers, err := harness.Peers()
	harness.Must(t, err)
	return s.loginWith(t, peers[0], project)
}

// loginWith is login with the stock CLI in a directory.
func (s service) loginWith(t *testing.T, dir string, project *harness.Tool) *harness.Tool {
	t.Helper()
	peers, err := harness.Peers()
	harness.Must(t, err)
	stock := &harness.Tool{Path: filepath.Join(dir, "pulumi"), Dir: project.Dir, Env: append(append([]string{},
		project.Env...), "PULUMI_HOME="+filepath.Join(t.TempDir(), "home"), "PULUMI_SKIP_UPDATE_CHECK=true",
		"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true", "PULUMI_ACCESS_TOKEN="+s.token)}
	stock.Must(t, "login", s.address)
	stock.Must(t, "plugin", "install", "resource", "fake", "0.1.0", "--file",
		filepath.Join(peers[1], "pulumi-resource-fake"))
	return stock
}

// said runs a command that must succeed and say something.
func said(t *testing.T, tool *harness.Tool, want string, args ...string) {
	t.Helper()
	if end := tool.Run(t, args...); end.Code != 0 || !strings.Contains(end.Stdout+end.Stderr, want) {
		t.Errorf("%s ends with %d and does not say %q:\n%s", strings.Join(args, " "), end.Code, want, end.Said())
	}
}

var update = []string{"--yes", "--skip-preview", "--non-interactive"}

func with(command string, more ...string) []string {
	return append(append([]string{command}, update...), more...)
}

// part is a part of a test; all of them use one service.
type part struct {
	name string
	long bool // make soak plays it alone
	play func(*testing.T, *harness.Home, service)
}

// playParts plays the parts of a test in parallel.
func playParts(t *testing.T, h *harness.Home, s service, parts []part) {
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			if p.long {
				soaktest.Only(t)
			}
			t.Parallel()
			p.play(t, h, s)
		})
	}
}

func TestTheStockCLIWorksAgainstDeployctl(t *testing.T) {
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	s := serviceOf(t, h)
	playParts(t, h, s, []part{
		{"its commands", false, commands},
		{"both tools in turn", false, inTurn},
		{"a start waits for the stack", true, waits},
		{"configuration comes back", true, refreshesConfiguration},
		{"a running update is cancelled", true, cancels},
		{"schedules and drift", true, schedules},
		{"the automation API", true, automation},
		{"webhooks", true, hooks},
		{"a stack of another backend", true, migrates},
	})
}

// commands plays each command that needs a backend.
func commands(t *testing.T, h *harness.Home, s service) {
	_, cloud := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	playCommands(t, s.login(t, h.Deployctl(dir, cloud)))
}

// playCommands plays them with a stock CLI that is logged in.
func playCommands(t *testing.T, p *harness.Tool) {
	t.Helper()
	said(t, p, deployments.LocalToken, "whoami")
	said(t, p, "", "stack", "init", "dev")
	said(t, p, "", "config", "set", "password", secret, "--secret")
	said(t, p, "3 to create", "preview", "--non-interactive")
	said(t, p, "3 created", with("up")...)
	if shown := p.Must(t, "stack"); strings.Contains(shown, "Pulumi version used: deployctl") {
		t.Errorf("the state that the CLI wrote is shown as\n%s", shown)
	}
	said(t, p, "3 unchanged", with("refresh")...)
	said(t, p, secret, "stack", "output", "password", "--show-secrets")
	file := filepath.Join(t.TempDir(), "state.json")
	said(t, p, "", "stack", "export", "--file", file)
	said(t, p, "Import complete", "stack", "import", "--file", file)
	said(t, p, "3 unchanged", "preview", "--non-interactive", "--expect-no-changes")
	if *soaktest.Full {
		playRarerCommands(t, p)
	}
	said(t, p, "", "stack", "rename", "production")
	said(t, p, secret, "config", "get", "password")
	if *soaktest.Full {
		said(t, p, "3 unchanged", "preview", "--non-interactive", "--expect-no-changes")
		said(t, p, "", "stack", "init", "other")
		said(t, p, "", "stack", "rm", "--yes")
		said(t, p, "", "stack", "select", "production")
	}
	said(t, p, "3 deleted", with("destroy")...)
	said(t, p, "", "stack", "rm", "--yes")
	said(t, p, "", "logout")
}

// playRarerCommands plays those on a stack with resources that leave them as they are.
func playRarerCommands(t *testing.T, p *harness.Tool) {
	t.Helper()
	said(t, p, secret, "config", "get", "password")
	said(t, p, "dev", "stack", "ls")
	said(t, p, "3 unchanged", "up", "--yes", "--non-interactive", "--expect-no-changes")
	said(t, p, "succeeded", "stack", "history")
	said(t, p, "", "stack", "tag", "set", "team", "blue")
	said(t, p, "blue", "stack", "tag", "get", "team")
	said(t, p, "", "stack", "tag", "rm", "team")
	said(t, p, "", "config", "refresh", "--force")
	said(t, p, secret, "config", "get", "password")
	said(t, p, "", "stack", "graph", filepath.Join(t.TempDir(), "graph.dot"))
	said(t, p, "", "state", "protect", "--yes", "--all")
	said(t, p, "", "state", "unprotect", "--yes", "--all")
	p.Stdin = harness.Passphrase + "\n"
	said(t, p, "", "stack", "change-secrets-provider", "passphrase")
	said(t, p, "", "stack", "change-secrets-provider", "default")
	said(t, p, "3 unchanged", "preview", "--non-interactive", "--expect-no-changes")
	if end := p.Run(t, "cancel", "--yes"); end.Code == 0 || !strings.Contains(end.Stderr, "nothing to cancel") {
		t.Errorf("cancel ends with %d: %s", end.Code, end.Said())
	}
	if end := p.Run(t, "stack", "rm", "--yes"); end.Code == 0 || !strings.Contains(end.Stderr, "still has resources") {
		t.Errorf("stack rm ends with %d: %s", end.Code, end.Said())
	}
}

// refreshesConfiguration gets the configuration of an update that deployctl has executed, with secrets that the CLI can
// decrypt by the stack's passphrase.
func refreshesConfiguration(t *testing.T, h *harness.Home, s service) {
	_, cloud := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	d := h.Deployctl(dir, cloud)
	d.Env = append(d.Env, "PULUMI_CONFIG_PASSPHRASE="+harness.Passphrase)
	p := s.login(t, d)
	said(t, p, "Created stack", "stack", "init", "hidden", "--secrets-provider", "passphrase")
	said(t, p, "", "config", "set", "password", secret, "--secret")
	d.Must(t, "up", "--yes", "--stack", "hidden")
	said(t, p, "", "config", "refresh", "--force")
	said(t, p, secret, "config", "get", "password")
	d.Must(t, "destroy", "--yes", "--stack", "hidden")
}

// inTurn updates one stack with both tools.
func inTurn(t *testing.T, h *harness.Home, s service) {
	_, cloud := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	ours := h.Deployctl(dir, cloud)
	p := s.login(t, ours)
	ours.Must(t, "stack", "init", "shared")
	ours.Must(t, "config", "set", "password", secret, "--secret")
	ours.Update(t, "up")
	p.Must(t, "stack", "select", "shared")
	said(t, p, "3 unchanged", with("up", "--expect-no-changes")...)
	ours.Expect(t, harness.Changes{"same": 3}, "preview")

	harness.Edit(t, filepath.Join(dir, "Pulumi.yaml"), "size: 1", "size: 2")
	said(t, p, secret, "config", "get", "password")
	said(t, p, "1 updated", with("up")...)
	ours.Expect(t, harness.Changes{"same": 3}, "up")
	said(t, p, "3 unchanged", "preview", "--non-interactive", "--expect-no-changes")
	if mine, theirs := ours.Outputs(t)["password"], secret; mine != theirs {
		t.Errorf("the output is %v", mine)
	}
	said(t, p, "Version", "stack", "history")
	ours.Update(t, "destroy")
	said(t, p, "", "stack", "rm", "--yes")
}

// waits starts an update of the stock CLI while one of deployctl has the stack: that is said when it is created, and
// again with the first sign of life of its start.
func waits(t *testing.T, h *harness.Home, s service) {
	cloud, env := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	ours := h.Deployctl(dir, env)
	p := s.login(t, ours)
	ours.Must(t, "stack", "init", "busy")
	ours.Must(t, "config", "set", "password", secret, "--secret")
	p.Must(t, "stack", "select", "busy")
	gate, err := cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Create})
	harness.Must(t, err)
	first := ours.Begin(t, "up", "--yes", "--skip-preview")
	harness.Eventually(t, "the first update has the stack", func() bool { return s.active(t, "busy") })
	second, said := begun(t, p)
	harness.Eventually(t, "the second update waits, and says behind whom", func() bool {
		return strings.Contains(ours.Must(t, "stack", "history"), "queued") && strings.Contains(said(), "is busy")
	})
	p.Must(t, "stack", "tag", "set", deployments.TagOnBusy, "fail")
	if refused := p.Run(t, with("up", "--message", "refused")...); refused.Code == 0 ||
		!strings.Contains(refused.Said(), "[409] Conflict: Another update is currently in progress.") {
		t.Errorf("a third ends with %d: %s", refused.Code, refused.Said())
	}
	history := p.Must(t, "stack", "history")
	if strings.Contains(history, "refused") || strings.Contains(history, "took -") ||
		!strings.Contains(history, "Status: in-progress") {
		t.Errorf("with one that runs, and one that was refused, the history is\n%s", history)
	}
	harness.Must(t, gate.Open(t.Context()))
	if end := first(); end.Code != 0 {
		t.Errorf("the first ends with %d: %s", end.Code, end.Said())
	}
	if err := second.Wait(); err != nil || !strings.Contains(said(), "3 unchanged") {
		t.Errorf("the second ends with %v: %s", err, said())
	}
}

// begun starts an update of the stock CLI, and returns what it says so far.
func begun(t *testing.T, p *harness.Tool) (up *exec.Cmd, said func() string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "said"))
	harness.Must(t, err)
	up = exec.CommandContext(t.Context(), p.Path, with("up")...)
	up.Dir, up.Env, up.Stdout, up.Stderr = p.Dir, p.Env, out, out
	harness.Must(t, up.Start())
	return up, func() string {
		text, err := os.ReadFile(out.Name())
		harness.Must(t, err)
		return string(text)
	}
}

// migrates moves a stack with secrets from a directory to the service.
func migrates(t *testing.T, h *harness.Home, s service) {
	_, cloud := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	p := s.login(t, h.Deployctl(dir, cloud))
	backend := "file://" + t.TempDir()
	from := &harness.Tool{Path: p.Path, Dir: dir, Env: append(append([]string{}, p.Env...),
		"PULUMI_BACKEND_URL="+backend)}
	from.Must(t, "stack", "init", "moved", "--secrets-provider", "passphrase")
	from.Must(t, "config", "set", "password", secret, "--secret")
	said(t, from, "3 created", with("up")...)
	said(t, p, "", "stack", "migrate", backend, "moved", "--yes")
	p.Must(t, "stack", "select", "moved")
	said(t, p, "3 unchanged", "preview", "--non-interactive", "--expect-no-changes")
	said(t, p, secret, "stack", "output", "password", "--show-secrets")
	said(t, p, "3 deleted", with("destroy")...)
}

// cancels ends an update of the stock CLI from another terminal, and updates the stack again.
func cancels(t *testing.T, h *harness.Home, s service) {
	cloud, env := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	p := s.login(t, h.Deployctl(dir, env))
	p.Must(t, "stack", "init", "stopped")
	p.Must(t, "config", "set", "password", secret, "--secret")
	gate, err := cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Create})
	harness.Must(t, err)
	first := p.Begin(t, with("up")...)
	harness.Must(t, gate.Wait(t.Context()))
	said(t, p, "has been canceled", "cancel", "--yes")
	harness.Eventually(t, "the cancelled update has freed the stack", func() bool { return !s.active(t, "stopped") })
	harness.Must(t, gate.Open(t.Context()))
	if end := first(); end.Code == 0 || !strings.Contains(end.Said(), "cancelled") {
		t.Errorf("the update ends with %d: %s", end.Code, end.Said())
	}
	said(t, p, "created", with("up")...)
}
