package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// home is a user's directories, with at most one embedded service.
type home struct {
	dir string
	env []string
	ui  uiClient
}

// newHome is a home of the test's own. Its service is stopped when the test ends.
func newHome(t *testing.T) *home {
	t.Helper()
	h, err := openHome(t.TempDir())
	must(t, err)
	harness.KeepPorts(t, h.state())
	t.Cleanup(func() {
		h.explain(t)
		must(t, h.end())
	})
	return h
}

func openHome(dir string) (*home, error) {
	h := &home{dir: dir}
	shared, err := harness.Shared()
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "DEPLOYCTL") && !strings.HasPrefix(variable, "PULUMI_") &&
			!strings.HasPrefix(variable, "FAKECLOUD_") {
			h.env = append(h.env, variable)
		}
	}
	h.env = append(h.env, "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"),
		"PULUMI_HOME="+filepath.Join(dir, "pulumi"), "NO_COLOR=1",
		"DEPLOYCTL_PLUGINS_DOWNLOAD="+mirror.URL)
	h.env = append(h.env, shared...)
	return h, err
}

// state is the embedded service's own directory.
func (h *home) state() string { return filepath.Join(h.dir, "state", "deployctl") }

// end stops the service, and kills it if it does not stop by itself.
func (h *home) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Patience)
	defer cancel()
	stop := exec.CommandContext(ctx, binary, "dev", "stop")
	stop.Env = h.env
	said, err := stop.CombinedOutput()
	if err == nil {
		return nil
	}
	if s, statusErr := h.readStatus(ctx); statusErr == nil && s.PID != 0 {
		_ = syscall.Kill(s.PID, syscall.SIGKILL)
	}
	return fmt.Errorf("dev stop: %w\n%s", err, said)
}

// explain tells, after a failure, what the service logged last.
func (h *home) explain(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(h.state(), "logs", "*.log")) // the pattern is well-formed
	for _, log := range logs {
		if text, err := os.ReadFile(log); err == nil && filepath.Base(log) != "temporal.log" {
			t.Logf("%s ends with\n%s", filepath.Base(log), text[max(0, len(text)-4000):])
		}
	}
}

// status is what `dev status --json` says.
type status struct {
	cluster.Temporal
	State, Home, UIURL, S3Endpoint, APIAddress, Certificate, TokenFile string
	PulumiAddress, PulumiTokenFile, PulumiProblem, ConsoleAddress      string
	PID                                                                int
}

func (h *home) readStatus(ctx context.Context) (s status, err error) {
	cmd := exec.CommandContext(ctx, binary, "dev", "status", "--json")
	cmd.Env = h.env
	said, err := cmd.Output()
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(said, &s)
}

func (h *home) status(t *testing.T) status {
	t.Helper()
	s, err := h.readStatus(t.Context())
	must(t, err)
	return s
}

// killService is kill -9 of the service's process; it returns when that is gone, and everything that it had started.
// What tells its end is the lock, which `dev status` looks at; a command that waits may have started the next one by then.
func (h *home) killService(t *testing.T) {
	t.Helper()
	pid := h.status(t).PID
	below := processesNamed(t, pid, "")
	_, before := processTable(t)
	kill(t, pid)
	eventually(t, "the service is gone", func() bool { return h.status(t).PID != pid })
	eventually(t, "what it had started is gone", func() bool {
		_, now := processTable(t)
		return !slices.ContainsFunc(below, func(p int) bool { return now[p] != "" && now[p] == before[p] })
	})
}

// kill is kill -9 of a process that this test started, by whatever ways.
func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("there is no process %d to kill", pid)
	}
	must(t, syscall.Kill(pid, syscall.SIGKILL))
}

// processesNamed gives the processes whose command line has the text, below an ancestor that is not 0.
func processesNamed(t *testing.T, ancestor int, text string) (pids []int) {
	t.Helper()
	parents, lines := processTable(t)
	for pid, line := range lines {
		if !strings.Contains(line, text) {
			continue
		}
		if ancestor == 0 {
			pids = append(pids, pid)
			continue
		}
		for at := parents[pid]; at > 1; at = parents[at] {
			if at == ancestor {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// processTable gives every process's parent and command line.
func processTable(t *testing.T) (parents map[int]int, lines map[int]string) {
	t.Helper()
	listing, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	must(t, err)
	parents, lines = map[int]int{}, map[int]string{}
	for line := range strings.Lines(string(listing)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		must(t, err)
		parent, err := strconv.Atoi(fields[1])
		must(t, err)
		parents[pid], lines[pid] = parent, strings.Join(fields[2:], " ")
	}
	return parents, lines
}

// eventually is harness.Eventually.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	harness.Eventually(t, what, done)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
