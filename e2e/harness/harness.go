// Package harness runs the built deployctl as its users do: as a process, in a home of its own, with an embedded
// service that ends with the test. It is for the packages below e2e.
//
// DEPLOYCTL names the binary, bin/deployctl by default; beside it is the one with the suffix -embedded. The peers are
// looked for where tools/peers/build puts them.
package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// Patience ends a test that hangs. A first update of a Go program, which compiles its SDK, takes minutes, and a busy
// machine may be ten times as slow as a quiet one.
const Patience = 2 * waittest.Patience

// maxSaid is how much of what a command wrote is shown.
const maxSaid = 5000

// Passphrase is that of every stack whose secrets provider is the passphrase.
const Passphrase = "correct horse battery staple"

// Root is the repository: the nearest directory with a go.work. Tests start in the directory of their package.
var Root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
})

// Binary is the deployctl under test.
func Binary() string {
	if binary := os.Getenv("DEPLOYCTL"); binary != "" {
		return binary
	}
	return filepath.Join(Root(), "bin", "deployctl")
}

// Peers builds what other programs the tests need, once, and gives the directories that hold them.
var Peers = sync.OnceValues(func() ([]string, error) {
	dir, err := Peer()
	return []string{dir, filepath.Join(Root(), "bin")}, err
})

// Peer builds those of the names, see tools/peers/build, and gives the directory that holds them.
func Peer(names ...string) (string, error) {
	build := exec.Command(filepath.Join(Root(), "tools", "peers", "build"), names...)
	build.Stderr = os.Stderr
	dir, err := build.Output()
	return strings.TrimSpace(string(dir)), err
}

// Home is a user's directories, with at most one embedded service.
type Home struct {
	Dir    string
	Binary string
	Env    []string // of every command
}

// NewHome makes a home, whose service uses the binary. The service is stopped when the test ends.
func NewHome(t *testing.T, binary string) *Home {
	t.Helper()
	peers, err := Peers()
	Must(t, err)
	dir := t.TempDir()
	h := &Home{Dir: dir, Binary: binary}
	KeepPorts(t, h.State())
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name != "PATH" && !strings.HasPrefix(name, "DEPLOYCTL") && !strings.HasPrefix(name, "PULUMI_") &&
			!strings.HasPrefix(name, "AWS_") {
			h.Env = append(h.Env, variable)
		}
	}
	h.Env = append(h.Env, "NO_COLOR=1", "DEPLOYCTL_PLUGINS_DOWNLOAD=off", "PULUMI_CONFIG_PASSPHRASE="+Passphrase,
		"PATH="+strings.Join(append(peers, os.Getenv("PATH")), string(os.PathListSeparator)),
		"XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"),
		"PULUMI_HOME="+filepath.Join(dir, "pulumi"),
		"DEPLOYCTL_PULUMI_LISTEN="+porttest.Address(t)) // its usual port is one for all of the machine
	shared, err := Shared()
	Must(t, err)
	h.Env = append(h.Env, shared...)
	t.Cleanup(func() {
		h.explain(t)
		if end := h.Deployctl(dir).Run(t, "dev", "stop"); end.Code != 0 {
			t.Errorf("dev stop: %s", end.Said())
		}
	})
	return h
}

// KeepPorts is cluster.KeepPorts until the test ends.
func KeepPorts(t *testing.T, state string) {
	t.Helper()
	reservation, err := cluster.KeepPorts(state)
	Must(t, err)
	t.Cleanup(func() { _ = reservation.Close() })
}

// Start starts the service in the background, which otherwise the first command does.
func (h *Home) Start(t *testing.T) {
	t.Helper()
	h.Deployctl(h.Dir).Must(t, "dev", "--background")
}

// State is the embedded service's own directory.
func (h *Home) State() string { return filepath.Join(h.Dir, "state", "deployctl") }

// S3 is the access to the embedded service's S3 server, once it has been started.
type S3 struct{ Endpoint, AccessKey, SecretKey string }

// S3 is whoever owns the service, with all rights.
func (h *Home) S3(t *testing.T) S3 {
	t.Helper()
	var status struct{ S3Endpoint string }
	Must(t, json.Unmarshal([]byte(h.Deployctl(h.Dir).Must(t, "dev", "status", "--json")), &status))
	text, err := os.ReadFile(filepath.Join(h.State(), "data", "keys.json"))
	Must(t, err)
	var keys struct{ S3AccessKey, S3SecretKey string }
	Must(t, json.Unmarshal(text, &keys))
	return S3{status.S3Endpoint, keys.S3AccessKey, keys.S3SecretKey}
}

// explain tells, after a failure, what the service logged last.
func (h *Home) explain(t *testing.T) {
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(h.State(), "logs", "*.log")) // the pattern is well-formed
	for _, log := range logs {
		if text, err := os.ReadFile(log); err == nil && filepath.Base(log) != "temporal.log" {
			t.Logf("%s ends with\n%s", filepath.Base(log), text[max(0, len(text)-3000):])
		}
	}
}

// Deployctl is deployctl in a directory.
func (h *Home) Deployctl(dir string, env ...string) *Tool {
	return &Tool{Path: h.Binary, Dir: dir, Env: append(append([]string{}, h.Env...), env...)}
}

// Tool is a program that a test runs in a directory again and again.
type Tool struct {
	Path, Dir string
	Env       []string
	Stdin     string // of every command
}

// End is how a command ended.
type End struct {
	Args           []string
	Stdout, Stderr string
	Code           int // -1: by a signal
}

// Said is what the command wrote, or the end of it.
func (e End) Said() string {
	said := e.Stdout + e.Stderr
	return said[max(0, len(said)-maxSaid):]
}

// Run runs a command to its end, whatever that is. It is in a process group of its own. If it hangs, that is told to
// quit, which has Go programs say what all their goroutines do, and is then killed.
func (r *Tool) Run(t *testing.T, args ...string) End {
	t.Helper()
	end, err := r.run(args)
	Must(t, err)
	return end
}

// Begin begins to run a command. What it returns waits for the end of it.
func (r *Tool) Begin(t *testing.T, args ...string) (end func() End) {
	t.Helper()
	var result End
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = r.run(args)
	}()
	return func() End {
		t.Helper()
		<-ended
		Must(t, err)
		return result
	}
}

func (r *Tool) run(args []string) (End, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience) // also for clean-ups, when t.Context has ended
	defer cancel()
	cmd := exec.CommandContext(ctx, r.Path, args...)
	cmd.Dir, cmd.Env = r.Dir, r.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	signal := func(s syscall.Signal) error { return syscall.Kill(-cmd.Process.Pid, s) }
	kill := time.AfterFunc(Patience+time.Minute, func() { _ = signal(syscall.SIGKILL) })
	defer kill.Stop()
	cmd.Cancel = func() error { return signal(syscall.SIGQUIT) }
	cmd.Stdin = strings.NewReader(r.Stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return End{}, fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(r.Path), strings.Join(args, " "),
			errors.Join(err, ctx.Err()), &stdout, &stderr)
	}
	return End{args, stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, nil
}

// Eventually waits for what cannot be waited for otherwise, as waittest.Until does, with the patience of this package.
// After a failure, the home of the test tells what its service logged.
func Eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience) // also for clean-ups, when t.Context has ended
	defer cancel()
	if err := waittest.Poll(ctx, what, done); err != nil {
		t.Fatalf("%v; all goroutines of the test:\n%s", err, waittest.Stacks())
	}
}

// Must runs a command that must succeed and gives what it prints on standard output.
func (r *Tool) Must(t *testing.T, args ...string) string {
	t.Helper()
	end := r.Run(t, args...)
	if end.Code != 0 {
		t.Fatalf("%s %s ends with %d; it says\n%s", filepath.Base(r.Path), strings.Join(args, " "), end.Code,
			end.Said())
	}
	return end.Stdout
}

// Must fails the test.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
