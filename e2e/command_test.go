package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// project is a working directory of a home.
type project struct {
	*home
	dir string
	env []string // besides the home's
}

// in gives the project of a directory.
func (h *home) in(dir string, env ...string) *project { return &project{h, dir, env} }

// projects are the names that projectName gave, by test, and how many.
var projects struct {
	sync.Mutex
	names map[*testing.T]string
}

// projectName is a test's own, another one each time that the test is run.
func projectName(t *testing.T) string {
	projects.Lock()
	defer projects.Unlock()
	if name, known := projects.names[t]; known {
		return name
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	if projects.names == nil {
		projects.names = map[*testing.T]string{}
	}
	name = fmt.Sprintf("%s-%d", strings.Trim(name[max(0, len(name)-85):], "-"), len(projects.names)+1)
	projects.names[t] = name
	return name
}

func (p *project) path(name string) string { return filepath.Join(p.dir, name) }

func (p *project) write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(p.path(name)), 0o700))
	must(t, os.WriteFile(p.path(name), []byte(text), 0o600))
}

func (p *project) replaceIn(t *testing.T, name, old, with string) {
	t.Helper()
	text, err := os.ReadFile(p.path(name))
	must(t, err)
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s does not contain %q", name, old)
	}
	p.write(t, name, strings.Replace(string(text), old, with, 1))
}

// output collects what a process writes, for a test that reads meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// ran is a command that runs or has ended.
type ran struct {
	args           []string
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{}
	code           int // once ended; -1: by a signal
}

// start starts a command. It is killed if the test ends before it.
func (p *project) start(t *testing.T, args ...string) *ran {
	t.Helper()
	r := &ran{args: args, ended: make(chan struct{})}
	r.cmd = exec.Command(binary, args...)
	r.cmd.Dir, r.cmd.Env = p.dir, append(append(r.cmd.Env, p.home.env...), p.env...)
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	must(t, r.cmd.Start())
	go func() {
		defer close(r.ended)
		err := r.cmd.Wait()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Errorf("deployctl %s: %v", strings.Join(args, " "), err)
		}
		r.code = r.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it may have ended
		<-r.ended
	})
	return r
}

// wait waits for the command's end.
func (r *ran) wait(t *testing.T) *ran {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(waittest.Patience):
		_ = r.cmd.Process.Signal(syscall.SIGQUIT) // it says what all its goroutines do
		<-r.ended
		t.Fatalf("deployctl %s does not end; it says\n%s", strings.Join(r.args, " "), r.said())
	}
	return r
}

func (r *ran) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// kill is kill -9 of the command alone.
func (r *ran) kill(t *testing.T) {
	t.Helper()
	kill(t, r.cmd.Process.Pid)
	<-r.ended
}

// interrupt is Ctrl-C.
func (r *ran) interrupt(t *testing.T) {
	t.Helper()
	must(t, r.cmd.Process.Signal(syscall.SIGINT))
}

func (r *ran) said() string { return r.stdout.String() + r.stderr.String() }

// says waits until the command has said something.
func (r *ran) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, "deployctl "+strings.Join(r.args, " ")+" says "+text, func() bool {
		ended := r.hasEnded()
		if strings.Contains(r.said(), text) {
			return true
		}
		if ended {
			t.Fatalf("deployctl %s does not say %q but\n%s", strings.Join(r.args, " "), text, r.said())
		}
		return false
	})
}

// run runs a command to its end, whatever that is.
func (p *project) run(t *testing.T, args ...string) *ran {
	t.Helper()
	return p.start(t, args...).wait(t)
}

// must runs a command that must succeed and gives what it prints on standard output.
func (p *project) must(t *testing.T, args ...string) string {
	t.Helper()
	r := p.run(t, args...)
	r.mustEnd(t, 0)
	return r.stdout.String()
}

// mustEnd waits for the end with a code.
func (r *ran) mustEnd(t *testing.T, code int) {
	t.Helper()
	if r.wait(t); r.code != code {
		t.Fatalf("deployctl %s ends with %d, not %d; it says\n%s", strings.Join(r.args, " "), r.code, code, r.said())
	}
}

// fails runs a command that must end with the code and say each of the texts.
func (p *project) fails(t *testing.T, code int, texts []string, args ...string) *ran {
	t.Helper()
	r := p.run(t, args...)
	r.mustEnd(t, code)
	for _, text := range texts {
		if !strings.Contains(r.said(), text) {
			t.Errorf("deployctl %s does not say %q but\n%s", strings.Join(args, " "), text, r.said())
		}
	}
	return r
}

// summary is the last line of --json.
type summary struct {
	Type    string
	Result  string
	Changes map[string]int
	Seconds float64
	Update  string
	// Policies counts what policy packs have found.
	Policies map[string]int
}

// report is what --json tells of an update.
type report struct {
	summary
	events []apitype.EngineEvent
}

// report reads the command's --json.
func (r *ran) report(t *testing.T) report {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.stdout.String()), "\n")
	var got report
	last := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	last.DisallowUnknownFields()
	if err := last.Decode(&got.summary); err != nil || got.Type != "summary" {
		t.Fatalf("deployctl %s does not end with a summary (%v) but\n%s", strings.Join(r.args, " "), err, r.said())
	}
	for _, line := range lines[:len(lines)-1] {
		var e apitype.EngineEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("not an event: %v: %s", err, line)
		}
		got.events = append(got.events, e)
	}
	return got
}

// update runs up, refresh, preview or destroy to a successful end.
func (p *project) update(t *testing.T, kind string, args ...string) report {
	t.Helper()
	args = append([]string{kind, "--json"}, args...)
	if kind != "preview" {
		args = append(args, "--yes")
	}
	r := p.run(t, args...)
	r.mustEnd(t, 0)
	got := r.report(t)
	if got.Result != "succeeded" {
		t.Fatalf("%s %s: %s", kind, got.Result, r.said())
	}
	return got
}

// expect compares the changes; "same" counts only where it is expected.
func (r report) expect(t *testing.T, want map[string]int) {
	t.Helper()
	got := maps.Clone(r.Changes)
	maps.DeleteFunc(got, func(op string, n int) bool { return n == 0 || op == "same" && want["same"] == 0 })
	if !maps.Equal(got, want) {
		t.Errorf("%s: the changes are %v, not %v", r.Update, got, want)
	}
}

// finished lists what was done, as "OP NAME", in its order; "same" is left out.
func (r report) finished() (ops []string) {
	for _, e := range r.events {
		if e.ResOutputsEvent == nil || e.ResOutputsEvent.Metadata.Op == apitype.OpSame {
			continue
		}
		m := e.ResOutputsEvent.Metadata
		ops = append(ops, string(m.Op)+" "+m.URN[strings.LastIndex(m.URN, "::")+2:])
	}
	return ops
}

// exported is the stack's state.
func (p *project) exported(t *testing.T) apitype.DeploymentV3 {
	t.Helper()
	var state apitype.UntypedDeployment
	must(t, json.Unmarshal([]byte(p.must(t, "stack", "export")), &state))
	var d apitype.DeploymentV3
	must(t, json.Unmarshal(state.Deployment, &d))
	return d
}

// outputs are the stack's.
func (p *project) outputs(t *testing.T) (values map[string]any) {
	t.Helper()
	must(t, json.Unmarshal([]byte(p.must(t, "stack", "output", "--json")), &values))
	return values
}
