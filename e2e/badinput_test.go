package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"go.temporal.io/sdk/client"
)

// TestBadPrograms runs programs and plugins that cannot work. Each ends with a sentence and a code that is not zero,
// and leaves the stack as it was.
func TestBadPrograms(t *testing.T) {
	const one = "\n  - {register: one, type: fake:index:Named, properties: {name: one}}\n"
	const fake = "packages: [{name: fake, version: 0.1.0}]\nsteps:" + one
	for row, c := range []struct {
		name, script string
		says         []string
		leaves       int // resources in the cloud
	}{
		{"a provider plugin that is not installed",
			"packages: [{name: nowhere, version: 1.2.3}]\nsteps: [{register: x, type: 'nowhere:index:Thing'}]\n",
			[]string{"pulumi-resource-nowhere", "deployctl plugin install resource nowhere"}, 0},
		{"a program that throws", fake + "  - await: []\n  - throw: the sky falls\n", []string{"the sky falls"}, 1},
		{"a program that exits with 7", fake + "  - await: []\n  - exit: 7\n",
			[]string{"the program exited with code 7"}, 1},
		{"a program that logs an error and ends", fake + "  - await: []\n  - fail: it cannot be\n",
			[]string{"it cannot be"}, 1},
		{"a program that never registers anything and throws", "steps: [{throw: nothing at all}]\n",
			[]string{"nothing at all"}, 0},
		{"a misspelt scenario", "steps: [{registre: x}]\n", []string{"a step must have one of these keys"}, 0},
		{"a URN that is registered twice",
			fake + "  - await: []\n  - {register: again, name: one, type: fake:index:Named, properties: {name: " +
				"other}}\n",
			[]string{"::one", "twice"}, 1},
		{"a dependency on a resource that nobody registers",
			fake + "  - await: []\n  - {register: two, type: fake:index:Named, properties: {name: two}, options: " +
				"{dependsOn: ['urn:pulumi:dev::p::fake:index:Named::ghost']}}\n",
			[]string{"::ghost", "::two"}, 1},
		{"a resource with three wrong properties",
			fake + "  - await: []\n  - {register: two, type: fake:index:Named, properties: {name: '', size: -1, " +
				"zone: x}}\n",
			[]string{"must not be empty", "must not be negative", "must be one of a, b and c"}, 1},
		{"an asset outside the bundle",
			"packages: [{name: fake, version: 0.1.0}]\nsteps: [{register: x, type: fake:index:Named, properties: " +
				"{name: x, settings: {file: !asset ../../outside.txt}}}]\n",
			[]string{"outside.txt"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			soaktest.ButFor(t, 5, row)
			t.Parallel()
			s := newStage(t, sharedHome(t))
			s.write(t, "scenario.yaml", c.script)
			r := s.fails(t, 1, c.says, "up", "--yes", "--skip-preview")
			if strings.Contains(r.said(), "goroutine ") || strings.Contains(r.said(), "rpc error") {
				t.Errorf("it says\n%s", r.said())
			}
			if found := s.objects(t); len(found) != c.leaves {
				t.Errorf("the cloud holds %v", found)
			}
			s.stateKnows(t)
			// Nothing is lost: the program is mended, and goes on.
			s.write(t, "scenario.yaml", fake)
			s.update(t, "up")
			if found := s.objects(t); len(found) != 1 {
				t.Errorf("then the cloud holds %v", found)
			}
		})
	}
}

// stateKnows makes sure that whatever is in the cloud is in the state.
func (s *stage) stateKnows(t *testing.T) {
	t.Helper()
	known := map[string]bool{}
	for _, r := range s.exported(t).Resources {
		known[string(r.URN)] = true
	}
	found, err := s.cloud.Objects(t.Context(), "")
	must(t, err)
	for _, o := range found {
		if !known[o.Owner] {
			t.Errorf("the state does not know %s", o.Owner)
		}
	}
}

func TestAProgramThatRegistersNothingDeletesEverything(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	s.update(t, "up")
	s.write(t, "scenario.yaml", "steps: []\n")
	s.update(t, "up")
	if found := s.objects(t); len(found) != 0 {
		t.Errorf("the cloud holds %v", found)
	}
}

// TestAProviderPluginOfAnotherVersion has one in the Pulumi home, and none on PATH.
func TestAProviderPluginOfAnotherVersion(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	only, plugins := t.TempDir(), filepath.Join(t.TempDir(), "plugins", "resource-fake-v0.1.0")
	must(t, os.MkdirAll(plugins, 0o700))
	for name, dir := range map[string]string{"pulumi-language-scenario": only, "pulumi-resource-fake": plugins} {
		path, err := exec.LookPath(name)
		must(t, err)
		must(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	s.env = append(s.env, "PATH="+only, "PULUMI_HOME="+filepath.Dir(filepath.Dir(plugins)))
	const script = "packages: [{name: fake, version: VERSION}]\nsteps: [{register: one, type: fake:index:Named, " +
		"properties: {name: one}}]\n"
	s.write(t, "scenario.yaml", strings.Replace(script, "VERSION", "9.9.9", 1))
	s.fails(t, 1, []string{"pulumi-resource-fake v9.9.9 was not found", "found there: v0.1.0",
		"deployctl plugin install resource fake 9.9.9"},
		"up", "--yes", "--skip-preview")
	s.write(t, "scenario.yaml", strings.Replace(script, "VERSION", "0.1.0", 1))
	s.update(t, "up")
	if found := s.objects(t); len(found) != 1 {
		t.Errorf("the cloud holds %v", found)
	}
}

func TestNamesMayHoldAnythingThatAURNCanTell(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	names := []string{"bücher und |pipes|", "a::b", strings.Repeat("long ", 60) + "name"}
	script := "packages: [{name: fake, version: 0.1.0}]\nsteps:\n"
	for i, name := range names {
		script += fmt.Sprintf("  - {register: r%d, name: %q, type: fake:index:Named, properties: {name: n%d}}\n", i,
			name, i)
	}
	s.write(t, "scenario.yaml", script)
	s.update(t, "up").expect(t, map[string]int{"create": len(names) + 1})
	s.update(t, "up").expect(t, map[string]int{"same": len(names) + 1})
	s.update(t, "destroy").expect(t, map[string]int{"delete": len(names) + 1})
	if found := s.objects(t); len(found) != 0 {
		t.Errorf("the cloud holds %v", found)
	}
}

func TestALanguageHostThatIsMissing(t *testing.T) {
	t.Parallel()
	p := sharedHome(t).in(t.TempDir())
	p.write(t, "Pulumi.yaml", "name: "+projectName(t)+"\nruntime: cobol\n")
	p.must(t, "stack", "init", "dev")
	p.fails(t, 1, []string{"pulumi-language-cobol", "put it on the PATH of the machine where programs run"}, "up", "--yes")
	p.write(t, "Pulumi.yaml", "name: "+projectName(t)+"\nruntime: ''\n")
	p.fails(t, 2, []string{"runtime"}, "up", "--yes")
}

func TestASecretThatCannotBeDecrypted(t *testing.T) {
	t.Parallel()
	s := newStage(t, sharedHome(t))
	s.must(t, "config", "set", "password", "hush-hush", "--secret")
	text, err := os.ReadFile(s.path("Pulumi.dev.yaml"))
	must(t, err)
	if strings.Contains(string(text), "hush") {
		t.Fatalf("the secret is in plain text:\n%s", text)
	}
	at := strings.Index(string(text), "secure: ") + len("secure: ")
	s.write(t, "Pulumi.dev.yaml", string(text[:at+12])+"AAAA"+string(text[at+16:]))
	s.fails(t, 2, []string{"password"}, "up", "--yes")
	if found := s.objects(t); len(found) != 0 {
		t.Errorf("the cloud holds %v", found)
	}
}

// TestBadStates imports states that break an invariant, and mends one that was broken by hand.
func TestBadStates(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	s.update(t, "up")
	good := s.must(t, "stack", "export")
	s.write(t, "good.json", good)
	urn := func(name string) string {
		for _, r := range s.exported(t).Resources {
			if strings.HasSuffix(string(r.URN), "::"+name) {
				return string(r.URN)
			}
		}
		t.Fatalf("there is no %s", name)
		return ""
	}
	for _, c := range []struct {
		name, old, with string
		says            []string
	}{
		{"a URN that is there twice", urn("named-3"), urn("named-1"), []string{"named-1"}},
		{"a dependency that is not there", `"` + urn("named-1") + `"`, `"` + urn("named-1") + `x"`,
			[]string{"named-1"}},
		{"no deployment", "{", "[", []string{"not an exported deployment"}},
		{"a version from the future", `"version": 3`, `"version": 99`, []string{"99"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.write(t, "bad.json", strings.ReplaceAll(good, c.old, c.with))
			if c.name == "a dependency that is not there" { // but for the resource itself
				s.write(t, "bad.json", strings.Replace(strings.ReplaceAll(good, c.old, c.with), `"urn": `+c.with,
					`"urn": `+c.old, 1))
			}
			r := s.fails(t, 2, c.says, "stack", "import", "--file", s.path("bad.json"))
			if strings.Contains(r.said(), "panic") {
				t.Errorf("it says\n%s", r.said())
			}
		})
	}
	s.update(t, "up").expect(t, map[string]int{"same": layersCreates + 1})
	s.must(t, "stack", "import", "--file", s.path("good.json"))
	s.asIfNothingHappened(t)
}

// TestADamagedCheckpoint edits the store's own file by hand.
func TestADamagedCheckpoint(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, newHome(t))
	s.update(t, "up")
	s.must(t, "dev", "stop")
	path := filepath.Join(s.state(), "data", "s3", "deployctl", "stacks", "organization", projectName(t), "dev",
		"checkpoints", "1.json.zst")
	whole, err := os.ReadFile(path)
	must(t, err)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	must(t, os.WriteFile(path, damaged, 0o600))
	if r := s.fails(t, 1, []string{"checkpoint", "deployctl stack import"}, "up", "--yes"); strings.Contains(r.said(),
		"goroutine ") {
		t.Errorf("it says\n%s", r.said())
	}
	must(t, os.WriteFile(path, whole, 0o600))
	s.asIfNothingHappened(t)
}

// TestAPayloadThatIsNotSealedIsRefused speaks to Temporal as somebody could who may use it and has not the key.
func TestAPayloadThatIsNotSealedIsRefused(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	service := s.status(t)
	stranger, err := service.Dial()
	must(t, err)
	t.Cleanup(stranger.Close)
	gate := s.gate(t, "named-1", fakecloud.Before)
	up := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	running := "organization/" + projectName(t) + "/dev/1"
	described, err := stranger.DescribeWorkflowExecution(t.Context(), "update/"+running, "")
	must(t, err)
	queue := described.GetExecutionConfig().GetTaskQueue().GetName()
	name := map[string]string{"organization": "organization", "project": projectName(t), "stack": "other",
		"version": "9"}
	for _, start := range []struct {
		workflow, id string
		input        any
	}{
		{"Update", "update/organization/" + projectName(t) + "/other/9",
			map[string]any{"update": name, "request": map[string]any{"kind": "destroy"}}},
		{"Stack", "stack/organization/" + projectName(t) + "/other", map[string]any{"stack": name}},
	} {
		run, err := stranger.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: start.id, TaskQueue: queue},
			start.workflow, start.input)
		must(t, err)
		eventually(t, start.workflow+" is refused", func() bool {
			w := s.describe(t, start.id)
			if w.WorkflowExecutionInfo.Status == "WORKFLOW_EXECUTION_STATUS_COMPLETED" || len(w.PendingActivities) > 0 {
				t.Fatalf("%s ran: %v", start.workflow, w)
			}
			return w.WorkflowExecutionInfo.Status == "WORKFLOW_EXECUTION_STATUS_FAILED" ||
				w.PendingWorkflowTask.Attempt > 1
		})
		// it may have ended
		_ = stranger.TerminateWorkflow(t.Context(), start.id, run.GetRunID(), "the test has seen enough")
	}

	// A signal of a stranger does not disturb an update.
	for _, id := range []string{"update/" + running, "run/" + running} {
		for _, signal := range []string{"cancel", "messages", "resolve"} {
			must(t, stranger.SignalWorkflow(t.Context(), id, "", signal, map[string]any{"force": true}))
		}
	}
	must(t, gate.Open(t.Context()))
	up.mustEnd(t, 0)
	s.asIfNothingHappened(t)
}

// TestAPortThatTheServiceKeepsIsTaken is about commands that start the service, in front and behind.
func TestAPortThatTheServiceKeepsIsTaken(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	p := newHome(t).in(t.TempDir())
	p.must(t, "dev", "--background")
	address := strings.TrimPrefix(p.status(t).S3Endpoint, "http://")
	p.must(t, "dev", "stop")
	taken, err := net.Listen("tcp", address)
	must(t, err)
	says := []string{"port " + address[strings.LastIndex(address, ":")+1:] +
		", which is kept for the S3 server, is taken by ", "end that process, or delete "}
	for _, args := range [][]string{{"dev"}, {"dev", "--background"}, {"stack", "ls", "--all"}} {
		r := p.fails(t, 5, says, args...)
		if strings.Contains(r.said(), "bind:") || strings.Count(r.said(), "error: ") != 1 {
			t.Errorf("deployctl %s says\n%s", strings.Join(args, " "), r.said())
		}
	}
	must(t, taken.Close())
	p.must(t, "stack", "ls", "--all")
}
