//go:build unix

package bundlecache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sandbox"
)

var stack = deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}

// newCache makes a cache with one entry, and returns what the clock shows when the entry is old enough for GC.
func newCache(t *testing.T) (c *Cache, entry string, later time.Time) {
	t.Helper()
	c = New(t.TempDir())
	entry = c.Entry(stack, "bundle")
	room := c.room(stack.Organization)
	must(t, os.MkdirAll(entry, 0o700), os.MkdirAll(sharedModules(room), 0o700),
		os.MkdirAll(filepath.Join(room, "tmp"), 0o700))
	return c, entry, time.Now().Add(KeepFor + time.Hour)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestAnEntryIsCollectedOnceNobodyPinsItAndItIsOld(t *testing.T) {
	c, entry, later := newCache(t)
	if c.GC(time.Now()); !exists(entry) {
		t.Fatal("it was collected at once")
	}
	pin, err := c.Pin(t.Context(), entry)
	must(t, err)
	if c.GC(later); !exists(entry) {
		t.Fatal("it was collected while it was pinned")
	}
	must(t, pin.Close(), c.BeginInstall(entry))
	if c.GC(later); exists(entry) || c.Incomplete(entry) {
		t.Error("the entry, or the note about it, stays")
	}
}

func TestADiskThatIsShortOfRoomLosesTheLeastRecentlyUsedEntries(t *testing.T) {
	c := New(t.TempDir())
	now := time.Now()
	entry := func(bundle string, age time.Duration) string {
		dir := c.Entry(stack, bundle)
		must(t, os.MkdirAll(dir, 0o700), os.Chtimes(dir, now.Add(-age), now.Add(-age)))
		return dir
	}
	recent, newer, older := entry("recent", time.Minute), entry("newer", 2*time.Hour), entry("older", 3*time.Hour)
	if c.GC(now); !exists(older) {
		t.Fatal("it was collected while there was room")
	}
	c.short = func() bool { return exists(older) }
	if c.GC(now); exists(older) || !exists(newer) || !exists(recent) {
		t.Fatal("not just the least recently used entry is gone")
	}
	c.short = func() bool { return true }
	if c.GC(now); exists(newer) || !exists(recent) {
		t.Error("an older entry stays, or one that was just used is gone")
	}
}

func TestAPinMakesAnEntryRecent(t *testing.T) {
	c, entry, _ := newCache(t)
	longAgo := time.Now().Add(-2 * KeepFor)
	must(t, os.Chtimes(entry, longAgo, longAgo))
	pin, err := c.Pin(t.Context(), entry)
	must(t, err)
	must(t, pin.Close())
	if c.GC(time.Now()); !exists(entry) {
		t.Error("it was collected")
	}
}

func TestStacksAndOrganizationsHaveTheirOwnEntries(t *testing.T) {
	c := New(t.TempDir())
	other, elsewhere := stack, stack
	other.Stack, elsewhere.Organization = "prod", "other"
	seen := map[string]bool{c.Entry(stack, "a"): true, c.Entry(stack, "b"): true, c.Entry(other, "a"): true,
		c.Entry(elsewhere, "a"): true}
	if len(seen) != 4 {
		t.Error(seen)
	}
	if filepath.Dir(c.Entry(stack, "a")) == filepath.Dir(c.Entry(elsewhere, "a")) {
		t.Error("two organizations share a room")
	}
}

func TestAPathBelongsToTheEntryThatContainsIt(t *testing.T) {
	c, entry, _ := newCache(t)
	inside := filepath.Join(entry, "node_modules", "x")
	must(t, os.MkdirAll(inside, 0o700))
	real, err := filepath.EvalSymlinks(inside)
	must(t, err)
	if got, ok := c.EntryOf(stack.Organization, real); !ok || got != entry {
		t.Errorf("%s, %v", got, ok)
	}
	if got, ok := c.EntryOf("other", real); ok {
		t.Errorf("another organization has %s", got)
	}
}

func TestWhatInterruptedProcessesLeaveIsCollected(t *testing.T) {
	c, entry, later := newCache(t)
	room := c.room(stack.Organization)
	unpacking, temporary := filepath.Join(filepath.Dir(entry), ".unpacking-1"), filepath.Join(room, "tmp", "session")
	must(t, os.Mkdir(unpacking, 0o700), os.Mkdir(temporary, 0o700))
	if c.GC(time.Now()); !exists(unpacking) || !exists(temporary) {
		t.Fatal("it was collected at once")
	}
	if c.GC(later); exists(unpacking) || exists(temporary) {
		t.Error("it stays")
	}
}

func TestSharedModulesStayAsLongAsTheEntryThatHasThem(t *testing.T) {
	c, entry, later := newCache(t)
	modules := filepath.Join(entry, "node_modules")
	link := c.SharedModules(stack.Organization, "key")
	must(t, os.Mkdir(modules, 0o700), ShareModules(filepath.Join(entry, "older"), link), ShareModules(modules, link))
	if to, err := os.Readlink(link); err != nil || to != modules {
		t.Fatalf("it leads to %s: %v", to, err)
	}
	if c.GC(time.Now()); !exists(link) {
		t.Fatal("it was collected with its entry in place")
	}
	if c.GC(later); exists(link) {
		t.Error("it stays without its entry")
	}
}

func TestCollectionFollowsNoLinkOfAProgram(t *testing.T) {
	for name, replace := range map[string]string{
		"the entries": sandbox.Bundles, "the shared modules": sandbox.Modules, "the temporary files": "tmp",
	} {
		t.Run(name, func(t *testing.T) {
			c, _, later := newCache(t)
			outside := t.TempDir()
			victim := filepath.Join(outside, "victim")
			link := filepath.Join(c.room(stack.Organization), replace)
			must(t, os.Mkdir(victim, 0o700), os.RemoveAll(link), os.Symlink(outside, link))
			if c.GC(later); !exists(victim) {
				t.Error("it removed a directory outside of the room")
			}
		})
	}
}

func TestAnInstallationThatEndsIsComplete(t *testing.T) {
	c, entry, _ := newCache(t)
	must(t, c.BeginInstall(entry))
	if !c.Incomplete(entry) {
		t.Error("it is complete before its end")
	}
	must(t, c.EndInstall(entry))
	if c.Incomplete(entry) {
		t.Error("it is incomplete after its end")
	}
}

func TestOnlyOneSessionInstallsAtATime(t *testing.T) {
	c, entry, _ := newCache(t)
	pin, err := c.Pin(t.Context(), entry)
	must(t, err)
	defer func() { _ = pin.Close() }()
	first, err := c.LockInstall(t.Context(), entry)
	must(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.LockInstall(ended, entry); !errors.Is(err, context.Canceled) {
		t.Errorf("the second one gets %v", err)
	}
	must(t, first.Close())
	second, err := c.LockInstall(t.Context(), entry)
	must(t, err, second.Close())
}
