//go:build unix

package session

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/bundlecache"
)

// shelved are the bundles of a test, each with a different file.
type shelved struct {
	*house
	session *Session
	place   string
}

func (h *house) shelve(project map[string]string, with string) shelved {
	h.t.Helper()
	project["file"] = with
	h.claim(deployments.UpdateRequest{Bundle: h.upload(project), DryRun: true, Kind: engine.KindUp})
	s, err := h.sessions.Hosted(h.t.Context(), h.update, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	return shelved{h, s, s.bundles.Entry(testStack, s.request.Bundle)}
}

func (b shelved) there() bool {
	_, err := os.Stat(b.place)
	return err == nil
}

func (b shelved) installed() bool {
	_, err := os.ReadDir(filepath.Join(b.place, "node_modules"))
	return err == nil
}

// collectBundles runs the garbage collection of bundles, after the one that the start of a session has begun.
func (h *house) collectBundles(now time.Time) {
	for !h.sessions.bundles.GC(now) {
		runtime.Gosched()
	}
}

func TestBundlesThatNobodyUsesAreRemovedAfterADay(t *testing.T) {
	h := newHouse(t)
	tomorrow := time.Now().Add(bundlecache.KeepFor + time.Hour)
	first := h.shelve(scenarioProject("steps: []"), "first")
	left := filepath.Join(filepath.Dir(first.place), ".unpacking-1")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	h.collectBundles(tomorrow)
	if !first.there() {
		t.Error("a bundle in use was removed")
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what an interrupted process left is still there")
	}
	release(h)
	h.collectBundles(time.Now())
	if !first.there() {
		t.Error("a bundle was removed before a day was over")
	}
	h.collectBundles(tomorrow)
	if first.there() {
		t.Error("a bundle that nobody uses is still there")
	}
	if again := h.shelve(scenarioProject("steps: []"), "first"); !again.there() || again.place != first.place {
		t.Error("it does not come back")
	}
}

func TestModulesThatAnotherBundleInstalledStayWhileTheyAreUsed(t *testing.T) {
	h := newHouse(t)
	h.npm("#!/bin/sh\nmkdir node_modules\n")
	project := map[string]string{"Pulumi.yaml": "name: test\nruntime: nodejs\n", "package.json": "{}"}
	tomorrow := time.Now().Add(bundlecache.KeepFor + time.Hour)
	installed := func(b shelved) shelved {
		t.Helper()
		if err := b.session.installDependencies(t.Context()); err != nil || !b.installed() {
			t.Fatalf("modules are there: %v, %v", b.installed(), err)
		}
		return b
	}
	first := installed(h.shelve(project, "first"))
	release(h)
	second := installed(h.shelve(project, "second"))
	if info, err := os.Lstat(filepath.Join(second.place, "node_modules")); err != nil ||
		info.Mode()&os.ModeSymlink == 0 {
		t.Fatalf("the second bundle has its own modules: %v %v", info, err)
	}
	h.collectBundles(tomorrow)
	if !first.installed() || !second.installed() {
		t.Error("modules in use were removed")
	}
	release(h)
	if err := os.RemoveAll(first.place); err != nil {
		t.Fatal(err)
	}
	h.collectBundles(time.Now())
	shared := filepath.Dir(h.sessions.bundles.SharedModules(testStack.Organization, "any"))
	if entries, err := os.ReadDir(shared); err != nil || len(entries) != 0 {
		t.Errorf("links to what is gone: %v %v", entries, err)
	}
	installed(h.shelve(project, "second")) // not linked this time
}
