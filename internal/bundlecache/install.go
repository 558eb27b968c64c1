package bundlecache

import (
	"context"
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
	lock := flock.New(c.note(program, installLock), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, lockError(ctx, err)
	}
	return lock, nil
}

// BeginInstall notes that packages are being installed into a directory. Until EndInstall, the directory is Incomplete.
func (c *Cache) BeginInstall(dir string) error {
	return Unavailable(os.WriteFile(c.note(dir, installing), nil, 0o600))
}

// EndInstall notes that all packages are installed.
func (c *Cache) EndInstall(dir string) error { return Unavailable(os.Remove(c.note(dir, installing))) }

// Incomplete reports whether an installation into a directory has begun and not ended.
func (c *Cache) Incomplete(dir string) bool {
	_, err := os.Stat(c.note(dir, installing))
	return err == nil
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
	_ = os.Remove(link) // it may lead to an entry that was collected
	return os.Symlink(modules, link)
}
