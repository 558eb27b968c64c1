package bundlecache

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/gofrs/flock"
)

// The notes about a directory into which packages are installed.
const (
	installLock = ".lock"
	installing  = ".installing"
)

// LockInstall waits until no other session, of whichever process, installs packages for a program. Closing the result
// lets the next one install.
func (c *Cache) LockInstall(ctx context.Context, program string) (io.Closer, error) {
	lock := flock.New(filepath.Join(c.notes(), note(program, installLock)), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, lockError(ctx, err)
	}
	return lock, nil
}

// BeginInstall notes that packages are being installed into a directory. Until EndInstall, the directory is Incomplete.
func (c *Cache) BeginInstall(dir string) error {
	return c.inNotes(func(notes *os.Root) error { return notes.WriteFile(note(dir, installing), nil, 0o600) })
}

// EndInstall notes that all packages are installed.
func (c *Cache) EndInstall(dir string) error {
	return c.inNotes(func(notes *os.Root) error { return notes.Remove(note(dir, installing)) })
}

// Incomplete reports whether an installation into a directory has begun and not ended.
func (c *Cache) Incomplete(dir string) bool {
	return c.inNotes(func(notes *os.Root) error {
		_, err := notes.Stat(note(dir, installing))
		return err
	}) == nil
}

// inNotes does something with the notes.
func (c *Cache) inNotes(do func(notes *os.Root) error) error {
	notes, err := c.openNotes()
	if err != nil {
		return err
	}
	return Unavailable(errors.Join(do(notes), notes.Close()))
}

// SharedModules returns the link through which the bundles of an organization share installed modules. The key says
// what is installed.
func (c *Cache) SharedModules(organization, key string) string {
	return filepath.Join(sharedModules(c.room(organization)), key)
}

// sharedModules returns the directory of a room's links to installed modules.
func sharedModules(room string) string { return filepath.Join(room, sandbox.Modules) }

// ShareModules makes a link of SharedModules lead to modules that are installed. It runs as the user of the room.
func ShareModules(modules, link string) error {
	all, err := sandbox.OpenDirectory(filepath.Dir(link))
	if err != nil {
		return err
	}
	defer func() { _ = all.Close() }()
	_ = all.Remove(filepath.Base(link)) // it may lead to an entry that was collected
	return all.Symlink(modules, filepath.Base(link))
}
