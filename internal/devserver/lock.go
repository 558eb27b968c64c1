package devserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// The locks of a home. They are released by the kernel when their process dies, however it dies.
const (
	lockService  = "service"  // held for the life of Start's service
	lockTemporal = "temporal" // held while the database is open
	lockS3       = "s3"       // held by the process that serves the objects
	lockHome     = "home"     // held for moments, while the contents of data/ are made
)

// errHeld says that another process has the lock.
var errHeld = errors.New("held by another process")

// lockRetry is how often a wanted lock is tried again. No system tells when a file lock becomes free without blocking a
// thread.
const lockRetry = 20 * time.Millisecond

// acquire takes a lock of h, trying for at most patience; errHeld if that is not enough. Readers of the status hold the
// lock shared for an instant, so patience is never zero.
func acquire(ctx context.Context, h home, name string, patience time.Duration) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(h.locks(), name), flock.SetPermissions(0o600))
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ok, err := lock.TryLockContext(waiting, lockRetry)
	switch {
	case ok:
		return lock, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil || errors.Is(err, context.DeadlineExceeded):
		return nil, errHeld
	}
	return nil, fmt.Errorf("lock %s: %w", lock.Path(), err)
}

// held says whether some process, this one included, has the lock. It makes nothing: a home that is not there holds no
// lock.
func held(h home, name string) (bool, error) {
	path := filepath.Join(h.locks(), name)
	if !exists(path) {
		return false, nil
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err != nil {
		return false, fmt.Errorf("look at lock %s: %w", path, err)
	}
	return !free, lock.Close()
}
