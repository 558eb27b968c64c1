package worker

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/gofrs/flock"
)

// temporary is the start of the names of workers' temporary directories.
const temporary = "deployctl-worker-"

// TemporaryDir creates a directory for the files of programs, and removes those of workers that were killed. The
// returned function removes this one.
func TemporaryDir(mode sandbox.Mode) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", temporary); err != nil {
		return "", nil, deployments.Errorf(deployments.CodeUnavailable,
			"cannot make a directory for programs (TMPDIR): %w", err)
	}
	lock := flock.New(inUse(dir), flock.SetPermissions(0o600))
	held, err := lock.TryLock()
	if err == nil && !held {
		err = errors.New("another worker has it")
	}
	if err == nil && mode == sandbox.RunAs {
		err = os.Chmod(dir, 0o711) // programs must pass through it
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	removeAbandoned(filepath.Dir(dir))
	return dir, func() { _ = errors.Join(lock.Close(), os.RemoveAll(dir)) }, nil
}

// inUse returns the file that a worker locks while it uses a directory.
func inUse(dir string) string { return filepath.Join(dir, "in-use") }

// removeAbandoned removes directories of killed workers. Those of other users stay.
func removeAbandoned(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, temporary+"*")) // the pattern is well-formed
	for _, dir := range dirs {
		if _, err := os.Stat(inUse(dir)); err != nil {
			continue // being created, or of another user
		}
		lock := flock.New(inUse(dir), flock.SetPermissions(0o600))
		if free, err := lock.TryLock(); err == nil && free {
			_ = os.RemoveAll(dir) // at worst the next worker tries again
		}
		_ = lock.Close()
	}
}
