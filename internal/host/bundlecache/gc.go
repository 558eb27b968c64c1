package bundlecache

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sys/diskspace"
)

// How long an entry stays after it was last pinned.
const (
	KeepFor      = 24 * time.Hour
	keepForShort = 10 * time.Minute // while the disk is short of room
)

// A disk is short of room while less than a tenth of it, and less than plenty, is free.
const plenty = 8 << 30 // bytes

func diskIsShort(dir string) bool {
	space, told := diskspace.Of(dir)
	return told && space.Free < min(plenty, space.Total/10)
}

// candidate is what may be evicted: an entry, or a part of one that an interrupted process has left.
type candidate struct {
	room sandbox.Directory
	path string // below the room
	info fs.FileInfo
}

func (e candidate) used() time.Time { return e.info.ModTime() }

func (e candidate) leftover() bool { return strings.HasPrefix(filepath.Base(e.path), ".") }

// GC removes the entries that nobody has pinned, nor begun to pin within KeepFor, with what was installed into them.
// While the disk is short of room, it also removes more recent ones, the least recently used first. It removes what
// interrupted processes have left, too. What cannot be removed stays until the next GC. It returns false, without doing
// anything, while this process runs another GC.
func (c *Cache) GC(now time.Time) bool {
	if !c.collecting.TryLock() {
		return false
	}
	defer c.collecting.Unlock()
	all, err := sandbox.OpenDirectory(c.Rooms())
	if err != nil {
		return true // there are none
	}
	defer func() { _ = all.Close() }()
	found, _ := all.Entries(".")
	var rooms []sandbox.Directory
	var candidates []candidate
	for _, r := range found {
		room, err := sandbox.OpenDirectory(filepath.Join(c.Rooms(), r.Name()))
		if err != nil {
			continue
		}
		defer func() { _ = room.Close() }()
		rooms = append(rooms, room)
		candidates = append(candidates, candidatesIn(room)...)
	}
	slices.SortFunc(candidates, func(x, y candidate) int { return x.used().Compare(y.used()) })
	for _, e := range candidates {
		age := now.Sub(e.used()).Abs() // programs can set the time of their entries, but not so that they stay for ever
		switch {
		case e.leftover() && age >= KeepFor:
			_ = e.room.RemoveAll(e.path)
		case e.leftover() || !e.info.IsDir():
		case age >= KeepFor, age >= keepForShort && c.short():
			c.evict(e)
		}
	}
	for _, room := range rooms {
		removeLeftovers(room, now)
	}
	return true
}

// candidatesIn returns the entries of a room.
func candidatesIn(room sandbox.Directory) (all []candidate) {
	for _, part := range []string{sandbox.Bundles, sandbox.Plugins} {
		found, _ := room.Entries(part)
		for _, e := range found {
			path := filepath.Join(part, e.Name())
			if info, err := room.Lstat(path); err == nil {
				all = append(all, candidate{room, path, info})
			}
		}
	}
	return all
}

// removeLeftovers removes the temporary files of sessions whose process was interrupted, and the links to modules whose
// entry is gone.
func removeLeftovers(room sandbox.Directory, now time.Time) {
	temporary, _ := room.Entries("tmp")
	for _, e := range temporary {
		path := filepath.Join("tmp", e.Name())
		if info, err := room.Lstat(path); err == nil && now.Sub(info.ModTime()) >= KeepFor {
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
func (c *Cache) evict(e candidate) {
	path := filepath.Join(e.room.Name(), e.path)
	lock, err := c.lock(path)
	if err != nil {
		return
	}
	defer func() { _ = lock.Close() }()
	if free, err := lock.TryLock(); err != nil || !free {
		return
	}
	if now, err := e.room.Lstat(e.path); err != nil || !now.ModTime().Equal(e.used()) { // it was pinned in the meantime
		return
	}
	gone := filepath.Join(filepath.Dir(e.path), ".gone-"+filepath.Base(e.path))
	_ = e.room.RemoveAll(gone)
	if e.room.Rename(e.path, gone) != nil {
		return
	}
	_ = e.room.RemoveAll(gone)
	notes, err := c.openNotes()
	if err != nil {
		return
	}
	defer func() { _ = notes.Close() }()
	for _, suffix := range []string{installing, installLock} { // of a program in the entry's own directory
		_ = notes.Remove(note(path, suffix))
	}
}
