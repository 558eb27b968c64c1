package bundlecache

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// KeepFor is how long an entry stays after it was last pinned.
const KeepFor = 24 * time.Hour

// GC removes the entries that nobody has pinned, nor began to pin within KeepFor, with what was installed into them. It
// also removes what interrupted processes have left. What cannot be removed stays until the next GC. It returns false,
// without doing anything, while this process runs another GC.
func (c *Cache) GC(now time.Time) bool {
	if !c.collecting.TryLock() {
		return false
	}
	defer c.collecting.Unlock()
	for _, former := range []string{"bundles", "modules"} { // the layout before organizations had rooms
		_ = os.RemoveAll(filepath.Join(c.dir, former))
	}
	rooms, _ := os.ReadDir(c.Rooms())
	for _, r := range rooms {
		c.collectRoom(filepath.Join(c.Rooms(), r.Name()), now)
	}
	return true
}

func (c *Cache) collectRoom(room string, now time.Time) {
	found, _ := os.ReadDir(entries(room))
	for _, e := range found {
		path := filepath.Join(entries(room), e.Name())
		info, err := e.Info()
		switch {
		case err != nil || now.Sub(info.ModTime()) < KeepFor:
		case strings.HasPrefix(e.Name(), "."):
			_ = os.RemoveAll(path)
		case e.IsDir():
			c.evict(path, now)
		}
	}
	temporary, _ := os.ReadDir(filepath.Join(room, "tmp"))
	for _, e := range temporary { // of sessions whose process was interrupted
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) >= KeepFor {
			_ = os.RemoveAll(filepath.Join(room, "tmp", e.Name()))
		}
	}
	links, _ := os.ReadDir(sharedModules(room))
	for _, l := range links {
		if link := filepath.Join(sharedModules(room), l.Name()); !leadsToEntry(room, link) {
			_ = os.Remove(link)
		}
	}
}

// leadsToEntry reports whether a link leads into an entry that exists. It does not follow the link: what GC does with
// it must not tell a program which other files exist.
func leadsToEntry(room, link string) bool {
	to, err := os.Readlink(link)
	if err != nil {
		return false
	}
	name, ok := firstBelow(entries(room), to)
	if !ok {
		return false
	}
	_, err = os.Lstat(filepath.Join(entries(room), name))
	return err == nil
}

// evict removes an entry unless it is pinned. It renames the entry first, so that no part of one is ever seen.
func (c *Cache) evict(entry string, now time.Time) {
	lock, err := c.lock(entry)
	if err != nil {
		return
	}
	defer func() { _ = lock.Close() }()
	if free, err := lock.TryLock(); err != nil || !free {
		return
	}
	if info, err := os.Stat(entry); err != nil || now.Sub(info.ModTime()) < KeepFor {
		return
	}
	gone := filepath.Join(filepath.Dir(entry), ".gone-"+filepath.Base(entry))
	_ = os.RemoveAll(gone)
	if os.Rename(entry, gone) != nil {
		return
	}
	_ = os.RemoveAll(gone)
	for _, suffix := range []string{installing, installLock} { // of a program in the entry's own directory
		_ = os.Remove(c.note(entry, suffix))
	}
}
