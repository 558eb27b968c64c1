package bundlecache

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/deployctl/deployctl/internal/sandbox"
)

// KeepFor is how long an entry stays after it was last pinned.
const KeepFor = 24 * time.Hour

// GC removes the entries that nobody has pinned, nor begun to pin within KeepFor, with what was installed into them. It
// also removes what interrupted processes have left. What cannot be removed stays until the next GC. It returns false,
// without doing anything, while this process runs another GC.
func (c *Cache) GC(now time.Time) bool {
	if !c.collecting.TryLock() {
		return false
	}
	defer c.collecting.Unlock()
	rooms, err := sandbox.OpenDirectory(c.Rooms())
	if err != nil {
		return true // there are none
	}
	defer func() { _ = rooms.Close() }()
	found, _ := rooms.Entries(".")
	for _, r := range found {
		c.collectRoom(filepath.Join(c.Rooms(), r.Name()), now)
	}
	return true
}

// collectRoom collects what is in one room.
func (c *Cache) collectRoom(path string, now time.Time) {
	room, err := sandbox.OpenDirectory(path)
	if err != nil {
		return
	}
	defer func() { _ = room.Close() }()
	old := func(path string) bool {
		info, err := room.Lstat(path)
		return err == nil && now.Sub(info.ModTime()) >= KeepFor
	}
	for _, part := range []string{sandbox.Bundles, sandbox.Plugins} {
		found, _ := room.Entries(part)
		for _, e := range found {
			entry := filepath.Join(part, e.Name())
			switch {
			case !old(entry):
			case strings.HasPrefix(e.Name(), "."):
				_ = room.RemoveAll(entry)
			case e.IsDir():
				c.evict(room, entry, old)
			}
		}
	}
	temporary, _ := room.Entries("tmp")
	for _, e := range temporary { // of sessions whose process was interrupted
		if path := filepath.Join("tmp", e.Name()); old(path) {
			_ = room.RemoveAll(path)
		}
	}
	links, _ := room.Entries(sandbox.Modules)
	for _, l := range links {
		if link := filepath.Join(sandbox.Modules, l.Name()); !leadsToEntry(room, link) {
			_ = room.Remove(link)
		}
	}
}

// leadsToEntry reports whether a link leads into an entry that exists. It does not follow the link: what GC does with
// it must not tell a program which other files exist.
func leadsToEntry(room sandbox.Directory, link string) bool {
	to, err := room.Readlink(link)
	if err != nil {
		return false
	}
	name, ok := firstBelow(entries(room.Name()), to)
	if !ok {
		return false
	}
	_, err = room.Lstat(filepath.Join(sandbox.Bundles, name))
	return err == nil
}

// evict removes an entry unless it is pinned. It renames the entry first, so that no part of one is ever seen.
func (c *Cache) evict(room sandbox.Directory, entry string, old func(path string) bool) {
	path := filepath.Join(room.Name(), entry)
	lock, err := c.lock(path)
	if err != nil {
		return
	}
	defer func() { _ = lock.Close() }()
	if free, err := lock.TryLock(); err != nil || !free || !old(entry) {
		return
	}
	gone := filepath.Join(filepath.Dir(entry), ".gone-"+filepath.Base(entry))
	_ = room.RemoveAll(gone)
	if room.Rename(entry, gone) != nil {
		return
	}
	_ = room.RemoveAll(gone)
	notes, err := c.openNotes()
	if err != nil {
		return
	}
	defer func() { _ = notes.Close() }()
	for _, suffix := range []string{installing, installLock} { // of a program in the entry's own directory
		_ = notes.Remove(note(path, suffix))
	}
}
