package languagehost_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost/hosttest"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"golang.org/x/sys/unix"
)

// hostile is a Go program in a sandbox whose compiler makes it one that does nothing.
type hostile struct {
	hidden string // a directory that it does not see
	box    *sandbox.Box
	host   *pluginhost.Host
}

func newHostile(t *testing.T) hostile {
	t.Helper()
	h, tools, dir := hostile{hidden: t.TempDir()}, t.TempDir(), t.TempDir()
	policy, _, err := sandbox.New(sandbox.Options{Mode: sandbox.Namespace, Hide: []string{h.hidden},
		Shared: []string{filepath.Dir(dir)}}) // where the test has its directories
	if err != nil {
		t.Fatal(err)
	}
	if h.box, err = policy.Box("mine", t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.box.Close() })
	compiler := "#!/bin/sh\ncp /bin/true \"$3\"\n"
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(compiler),
		0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	h.host, err = pluginhost.New(pluginhost.Options{
		RootDir: dir, PulumiHome: t.TempDir(), Env: []string{"PATH=" + tools + ":/usr/bin:/bin"}, Box: h.box,
		Project: &workspace.Project{Name: "test", Runtime: workspace.NewProjectRuntimeInfo("go", nil)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.host.Close(context.Background()) })
	return h
}

// run builds the program and runs it.
func (h hostile) run(t *testing.T) error {
	t.Helper()
	ctx := waittest.Context(t)
	language, err := h.host.Language(ctx, "go")
	if err != nil {
		t.Fatal(err)
	}
	return language.Run(ctx, pluginhost.RunRequest{Organization: "mine", Project: "test", Stack: "dev",
		MonitorAddress: hosttest.New(t).Address})
}

func (h hostile) binaries() string {
	return filepath.Join(h.box.Home(), ".cache", "deployctl", "programs")
}

func TestALinkInPlaceOfTheBinariesHasTheWorkerRemoveNothing(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	key, longAgo := filepath.Join(h.hidden, "key"), time.Now().AddDate(-1, 0, 0)
	must(t, os.WriteFile(key, []byte("text"), 0o600))
	must(t, os.Chtimes(key, longAgo, longAgo))
	must(t, os.MkdirAll(filepath.Dir(h.binaries()), 0o700))
	must(t, os.Symlink(h.hidden, h.binaries()))
	if err := h.run(t); err == nil {
		t.Error("the program is built where the link leads")
	}
	if left, err := os.ReadDir(h.hidden); err != nil || len(left) != 1 || left[0].Name() != "key" {
		t.Errorf("the worker leaves %v, %v", left, err)
	}
}

func TestAPipeBesideABinaryHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	must(t, h.run(t))
	homes, err := os.ReadDir(h.binaries())
	if err != nil || len(homes) != 1 {
		t.Fatal(homes, err)
	}
	lock := filepath.Join(h.binaries(), homes[0].Name(), "lock")
	_ = os.Remove(lock)
	must(t, syscall.Mkfifo(lock, 0o600))
	must(t, h.run(t))
}

func TestADirectoryOfModulesThatIsSwappedForAPipeHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newProgram(t, "nodejs", dir, map[string]string{"package.json": `{}`})
	stored := filepath.Join(dir, "node_modules", ".pnpm", "stored")
	pipe := filepath.Join(dir, "pipe")
	must(t, os.MkdirAll(stored, 0o700))
	must(t, syscall.Mkfifo(pipe, 0o600))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, stored, unix.AT_FDCWD, pipe, unix.RENAME_EXCHANGE)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	ctx := waittest.Context(t)
	for range 300 {
		if _, err := p.lang.RequiredPackages(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
