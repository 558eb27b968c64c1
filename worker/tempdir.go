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

// roomy is where the directory of a worker is if TMPDIR is not set, and programs of other users may put files into the
// system's own directory for temporary files.
var roomy = "/var/lib/deployctl-worker"

// TemporaryDir creates a directory for the files of programs, and removes those of workers that were killed. The
// returned function removes this one. policy says how programs are kept apart; nil: they are not.
func TemporaryDir(policy *sandbox.Policy) (dir string, remove func(), err error) {
	parent, err := placeOfPrograms(policy)
	if err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp(parent, temporary); err != nil {
		return "", nil, deployments.Errorf(deployments.CodeUnavailable,
			"cannot make a directory for programs (TMPDIR): %w", err)
	}
	lock := flock.New(inUse(dir), flock.SetPermissions(0o600))
	held, err := lock.TryLock()
	if err == nil && !held {
		err = errors.New("another worker has it")
	}
	if err == nil && policy.Mode() == sandbox.RunAs {
		err = os.Chmod(dir, 0o711) // programs must pass through it
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	removeAbandoned(filepath.Dir(dir), os.Geteuid())
	return dir, func() { _ = errors.Join(lock.Close(), sandbox.RemoveAll(dir)) }, nil
}

// placeOfPrograms returns the directory in which that of a worker is. With users of their own, programs put no file
// above it: see sandbox.Policy.Above.
func placeOfPrograms(policy *sandbox.Policy) (string, error) {
	parent := os.TempDir()
	open := policy.Above(parent)
	if policy.Mode() != sandbox.RunAs || open == "" {
		return parent, nil
	}
	if os.Getenv("TMPDIR") == "" && os.MkdirAll(roomy, 0o711) == nil && policy.Above(roomy) == "" &&
		os.Chmod(roomy, 0o711) == nil { // whatever the umask
		removeAbandoned(parent, os.Geteuid()) // of a former release
		return roomy, nil
	}
	return "", deployments.Errorf(deployments.CodeInvalid, "programs of every organization could put files into %s, "+
		"above the programs of others, whose tools would use them (node_modules, go.work): set TMPDIR to a directory "+
		"such as %s, made by `install -d -m 711 %s`, on the way to which only root may change anything", open, roomy, roomy)
}

// everybodys are directories in which programs of all organizations may put files if they run as other users.
var everybodys = []string{"/tmp", "/var/tmp", "/dev/shm"}

// SecureVolumes gives the directories of a container the rights that those of a machine have. Everybody may do anything
// in a new volume: if it is this user's, nobody else may put files into the directory that workers have on a machine,
// unless somebody has already, nor remove or replace those of others where everybody has some. Do it before the sandbox
// looks at what programs could change; TemporaryDir looks, too. If it fails, those say what is open.
func SecureVolumes() {
	if info := openToAll(roomy); info != nil {
		if entries, err := os.ReadDir(roomy); err == nil && len(entries) == 0 {
			_ = os.Chmod(roomy, 0o711) //nolint:gosec // programs must pass through it
		}
	}
	for _, dir := range everybodys {
		if info := openToAll(dir); info != nil && info.Mode()&os.ModeSticky == 0 {
			_ = os.Chmod(dir, info.Mode().Perm()|os.ModeSticky)
		}
	}
}

// openToAll describes a directory of this user to which others may write; nil: it is not such a one.
func openToAll(dir string) os.FileInfo {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 == 0 || !belongsTo(info, os.Geteuid()) {
		return nil
	}
	return info
}

// inUse returns the file that a worker locks while it uses a directory.
func inUse(dir string) string { return filepath.Join(dir, "in-use") }

// removeAbandoned removes directories of killed workers of this user. What others have put there, whose names are
// theirs to choose, is neither opened nor removed, and of this user's own files, nothing is opened but a regular one: a
// program may have put a link or a pipe there.
func removeAbandoned(parent string, user int) {
	dirs, _ := filepath.Glob(filepath.Join(parent, temporary+"*")) // the pattern is well-formed
	for _, dir := range dirs {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !belongsTo(info, user) {
			continue
		}
		if info, err := os.Lstat(inUse(dir)); err != nil || !info.Mode().IsRegular() {
			continue // being created, or not a worker's
		}
		lock := flock.New(inUse(dir), flock.SetFlag(openAsIs))
		if free, err := lock.TryLock(); err == nil && free {
			_ = sandbox.RemoveAll(dir) // at worst the next worker tries again
		}
		_ = lock.Close()
	}
}
