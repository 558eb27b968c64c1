//go:build unix

package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/statestore/bucket"
)

// hooked is an object store that calls a test's function before a read.
type hooked struct {
	bucket.Memory
	mu   sync.Mutex
	read func()
}

func (o *hooked) Get(ctx context.Context, key string) (bucket.Object, error) {
	o.mu.Lock()
	if o.read != nil {
		o.read()
	}
	o.mu.Unlock()
	return o.Memory.Get(ctx, key)
}

func TestWhatAProgramPutsIntoABundleThatIsBeingUnpackedHasTheWorkerWriteNowhereElse(t *testing.T) {
	for name, put := range map[string]func(making, outside string) error{
		"a pipe in place of a file": func(making, _ string) error {
			return syscall.Mkfifo(
				filepath.Join(making, "scenario.yaml"), 0o600)
		},
		"a link in place of a file": func(making, outside string) error {
			return os.Symlink(filepath.Join(outside, "file"), filepath.Join(making, "scenario.yaml"))
		},
		"a link in place of the directory": func(making, outside string) error {
			return errors.Join(os.Rename(making, making+"-away"), os.Symlink(outside, making))
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := &hooked{}
			h, outside := newHouseOn(t, objects), t.TempDir()
			if err := os.WriteFile(filepath.Join(outside, "file"), []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
			place := h.shelve(scenarioProject("steps: []"), "file").place
			release(h)
			if err := os.RemoveAll(place); err != nil {
				t.Fatal(err)
			}
			met := false
			objects.read = func() {
				making, _ := filepath.Glob(filepath.Join(filepath.Dir(place), ".unpacking-*"))
				if len(making) != 1 || met {
					return
				}
				met = true
				if err := put(making[0], outside); err != nil {
					t.Error(err)
				}
			}
			_, err := h.sessions.Open(t.Context(), h.update, 0, h.request, false)
			left, _ := os.ReadDir(outside)
			text, _ := os.ReadFile(filepath.Join(outside, "file"))
			if !met || err == nil || len(left) != 1 || string(text) != "text" {
				t.Errorf("it meets the directory: %v; it ends with %v, and leaves %v, %q", met, err, left, text)
			}
		})
	}
}

func TestALinkInPlaceOfABundleHasTheWorkerChangeNothingElse(t *testing.T) {
	h := newHouse(t)
	outside, longAgo := t.TempDir(), time.Now().AddDate(-1, 0, 0).Truncate(time.Second)
	b := h.shelve(scenarioProject("steps: []"), "file")
	release(h)
	if err := errors.Join(os.Chtimes(outside, longAgo, longAgo), os.RemoveAll(b.place),
		os.Symlink(outside, b.place)); err != nil {
		t.Fatal(err)
	}
	lock, err := h.sessions.bundles.Pin(t.Context(), b.place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if info, err := os.Stat(outside); err != nil || !info.ModTime().Equal(longAgo) {
		t.Errorf("it is of %v, %v", info.ModTime(), err)
	}
}

func TestALinkInPlaceOfABundleHasTheWorkerLinkNoModulesElsewhere(t *testing.T) {
	h := newHouse(t)
	h.npm("#!/bin/sh\nmkdir -p node_modules\n")
	project := map[string]string{"Pulumi.yaml": "name: test\nruntime: nodejs\n", "package.json": "{}"}
	if err := h.shelve(project, "first").session.installDependencies(t.Context()); err != nil {
		t.Fatal(err)
	}
	release(h)
	second := h.shelve(project, "second")
	outside := filepath.Join(t.TempDir(), "bundle")
	if err := errors.Join(os.Rename(second.place, outside), os.Symlink(outside, second.place)); err != nil {
		t.Fatal(err)
	}
	if err := second.session.installDependencies(t.Context()); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(filepath.Join(outside, "node_modules")); err == nil {
		t.Errorf("the worker makes a link to %s there", to)
	}
}

func TestWhatALinkAmongSharedModulesLeadsToIsNotTold(t *testing.T) {
	h := newHouse(t)
	h.shelve(scenarioProject("steps: []"), "file")
	shared := filepath.Dir(h.sessions.bundles.SharedModules(testStack.Organization, "any"))
	for name, to := range map[string]string{"there": t.TempDir(), "not-there": "/nowhere"} {
		if err := os.Symlink(to, filepath.Join(shared, name)); err != nil {
			t.Fatal(err)
		}
	}
	h.collectBundles(time.Now())
	if left, err := os.ReadDir(shared); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}
