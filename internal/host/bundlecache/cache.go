// Package bundlecache keeps the unpacked bundles of a worker: one directory, called an entry, per stack and bundle. The
// plugins that the worker has downloaded for an organization are entries, too.
//
// The entries of an organization are in its room, a directory that belongs to the sandbox of its programs. Several
// worker processes may share a cache: an entry that one of them has pinned is not collected by another. Programs run in
// the rooms and may put anything there, so what the cache notes about entries is kept beside the rooms.
package bundlecache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/gofrs/flock"
)

// lockRetry is the pause between attempts to lock a file. No system reports that a lock is free without blocking a
// thread.
const lockRetry = 50 * time.Millisecond

// Cache is a cache of bundles. It is safe for concurrent use.
type Cache struct {
	dir        string
	collecting sync.Mutex
	short      func() bool // reports whether the disk is short of room
}

// New returns the cache in a directory.
func New(dir string) *Cache { return &Cache{dir: dir, short: func() bool { return diskIsShort(dir) }} }

// Rooms returns the directory that has a room for each organization, named by sandbox.RoomName.
func (c *Cache) Rooms() string { return filepath.Join(c.dir, "organizations") }

func (c *Cache) room(organization string) string {
	return filepath.Join(c.Rooms(), sandbox.RoomName(organization))
}

// entries returns the directory of a room's entries.
func entries(room string) string { return filepath.Join(room, sandbox.Bundles) }

// Entry returns the directory of a stack's bundle. It need not exist.
func (c *Cache) Entry(stack deployments.StackName, bundle string) string {
	name := sha256.Sum256([]byte(stack.String() + "\x00" + bundle))
	return filepath.Join(entries(c.room(stack.Organization)), hex.EncodeToString(name[:16]))
}

// EntryOf returns the entry of an organization that contains a path, if one does.
func (c *Cache) EntryOf(organization, path string) (entry string, ok bool) {
	rooms, err := filepath.EvalSymlinks(c.Rooms()) //nolint:forbidigo // the worker's own directory
	if err != nil {
		return "", false
	}
	room := sandbox.RoomName(organization)
	name, ok := firstBelow(entries(filepath.Join(rooms, room)), path)
	return filepath.Join(entries(c.room(organization)), name), ok
}

// firstBelow returns the first part of a path below a directory, if the path is below it.
func firstBelow(dir, path string) (name string, ok bool) {
	rest, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rest) {
		return "", false
	}
	name, _, _ = strings.Cut(rest, string(filepath.Separator))
	return name, true
}

// Pin keeps an entry, which need not exist yet, from being collected until the result is closed.
func (c *Cache) Pin(ctx context.Context, entry string) (io.Closer, error) {
	lock, err := c.lock(entry)
	if err != nil {
		return nil, err
	}
	if _, err := lock.TryRLockContext(ctx, lockRetry); err != nil {
		return nil, lockError(ctx, err)
	}
	if all, err := sandbox.OpenDirectory(filepath.Dir(entry)); err == nil {
		now := time.Now()
		_ = errors.Join(all.Chtimes(filepath.Base(entry), now, now), all.Close()) // at worst it is unpacked again
	}
	return lock, nil
}

func lockError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return Unavailable(err)
}

// Unavailable returns the error for files that the worker's disk does not take or give.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return deployments.Errorf(deployments.CodeUnavailable, "the worker cannot keep the project's files: %w", err)
}

// notes is the directory of lock files and of notes about entries.
func (c *Cache) notes() string { return filepath.Join(c.dir, "uses") }

// openNotes opens the directory of notes.
func (c *Cache) openNotes() (*os.Root, error) {
	if err := os.MkdirAll(c.notes(), 0o700); err != nil { //nolint:forbidigo // the worker's own directory
		return nil, Unavailable(err)
	}
	notes, err := os.OpenRoot(c.notes())
	return notes, Unavailable(err)
}

// lock returns the lock of an entry. Some entries share one, so the number of lock files is bounded, and none is
// removed.
func (c *Cache) lock(entry string) (*flock.Flock, error) {
	notes, err := c.openNotes()
	if err != nil {
		return nil, err
	}
	defer func() { _ = notes.Close() }()
	return flock.New(filepath.Join(c.notes(), filepath.Base(entry)[:2]), flock.SetPermissions(0o600)), nil
}

// note returns the name of a file about a directory of a program, which the program can neither see nor replace.
func note(dir, suffix string) string {
	name := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(name[:16]) + suffix
}
