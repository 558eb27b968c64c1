//go:build unix

package languagehost_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/plugin/languagehost"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost/hosttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// sdkVersion is the newest @pulumi/pulumi for Node 20.
const sdkVersion = "3.248.0"

// TestMain makes the test binary a language host when it is called by such a name.
func TestMain(m *testing.M) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if runtime, ok := strings.CutPrefix(name, "pulumi-language-"); ok {
		os.Exit(languagehost.Main(runtime, os.Args[1:]))
	}
	os.Exit(runTests(m))
}

// runTests gives what language hosts keep in the user's cache a place that is removed. Only Go's build cache is shared.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "languagehost-cache")
	user, noUser := os.UserCacheDir()
	if err := errors.Join(err, noUser); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv("GOCACHE") == "" {
		_ = os.Setenv("GOCACHE", filepath.Join(user, "go-build")) // a name without a NUL
	}
	_ = os.Setenv("XDG_CACHE_HOME", dir)
	code := m.Run()
	for _, left := range []string{dir, nodeRoot, goRoot} {
		if left != "" {
			_ = os.RemoveAll(left)
		}
	}
	return code
}

// program is a program under test with all that it is run by and against.
type program struct {
	dir     string
	project *workspace.Project
	monitor *hosttest.Monitor
	host    *pluginhost.Host
	lang    *pluginhost.Language
	said    *journal
}

// newProgram writes the files of a program and starts its language host.
func newProgram(t *testing.T, runtime, dir string, files map[string]string, env ...string) *program {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newProgramOf(t, workspace.NewProjectRuntimeInfo(runtime, nil), dir, env...)
}

// newProgramOf starts the language host of a program that has been written.
func newProgramOf(t *testing.T, runtime workspace.ProjectRuntimeInfo, dir string, env ...string) *program {
	t.Helper()
	p := &program{dir: dir, monitor: hosttest.New(t), said: &journal{news: make(chan struct{}, 1)}}
	var err error
	p.project = &workspace.Project{Name: "test", Runtime: runtime}
	p.host, err = pluginhost.New(pluginhost.Options{
		RootDir: dir, PulumiHome: t.TempDir(), Env: append(os.Environ(), env...), Log: p.said.log, Project: p.project,
		Config: map[string]string{"test:size": "3", "test:password": "hunter2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.host.Close(context.Background()) })
	if p.lang, err = p.host.Language(t.Context(), runtime.Name()); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) run(ctx context.Context) error {
	return p.lang.Run(ctx, pluginhost.RunRequest{
		Organization: "organization", Project: "test", Stack: "dev", Parallel: 8,
		SecretKeys: []string{"test:password"}, MonitorAddress: p.monitor.Address,
	})
}

// start runs the program in the background.
func (p *program) start(ctx context.Context) <-chan error {
	result := make(chan error, 1)
	go func() { result <- p.run(ctx) }()
	return result
}

// journal collects messages.
type journal struct {
	mu       sync.Mutex
	messages []pluginhost.Message
	news     chan struct{}
}

func (j *journal) log(m pluginhost.Message) {
	j.mu.Lock()
	j.messages = append(j.messages, m)
	j.mu.Unlock()
	select {
	case j.news <- struct{}{}:
	default:
	}
}

func (j *journal) find(text string) (pluginhost.Message, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.messages, func(m pluginhost.Message) bool { return strings.Contains(m.Text, text) })
	if i < 0 {
		return pluginhost.Message{}, false
	}
	return j.messages[i], true
}

// await returns the first message with the text, as soon as there is one.
func (j *journal) await(t *testing.T, text string) pluginhost.Message {
	t.Helper()
	for {
		if m, ok := j.find(text); ok {
			return m
		}
		waittest.For(t, fmt.Sprintf("something says %q", text), j.news)
	}
}

// pid is the one that a program prints as that of a process.
func (j *journal) pid(t *testing.T, process string) int {
	t.Helper()
	label := "pid of " + process + " "
	_, number, _ := strings.Cut(j.await(t, label).Text, label)
	pid, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// awaitGone waits for a process that is no child of ours, and ends on its own time.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("process %d has gone", pid), func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return syscall.Kill(pid, 0) != nil
		}
		return strings.Contains(string(state), ") Z ")
	})
}

// Node programs share one installation: each is a directory below it.
var (
	nodeRoot    string
	nodeInstall sync.Once
	nodeErr     error
)

// nodeDir is a directory for a program in which @pulumi/pulumi is installed.
func nodeDir(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("installs from npm")
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on PATH", tool)
		}
	}
	nodeInstall.Do(func() {
		if nodeRoot, nodeErr = os.MkdirTemp("", "node-programs"); nodeErr != nil {
			return
		}
		p := newProgram(t, "nodejs", nodeRoot, map[string]string{
			"package.json": `{"name": "programs", "dependencies": {"@pulumi/pulumi": "` + sdkVersion + `"}}`,
		})
		if !p.lang.NeedsInstall() {
			nodeErr = fmt.Errorf("nothing is installed, and nothing needs to be")
			return
		}
		nodeErr = p.lang.InstallDependencies(t.Context(), p.dir)
	})
	if nodeErr != nil {
		t.Fatal(nodeErr)
	}
	dir, err := os.MkdirTemp(nodeRoot, "program")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// bin is a directory with the test binary as a language host.
func bin(t *testing.T, runtime string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "pulumi-language-"+runtime)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func wantInputs(t *testing.T, got, want map[string]any) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func wantSeverity(t *testing.T, m pluginhost.Message, want diag.Severity) {
	t.Helper()
	if m.Severity != want {
		t.Errorf("%q is %s, want %s", m.Text, m.Severity, want)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
