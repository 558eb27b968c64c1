package project

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ChangeFile changes a file that several commands of a user may change at once: change gets its text, nil if there is
// none, while no other call of ChangeFile is at that file, and returns the next one. The file is written in place, so
// that it keeps its mode, and a link to it stays one.
func ChangeFile(path string, change func(now []byte) ([]byte, error)) error {
	locks, err := locksOf(path)
	if err != nil {
		return err
	}
	defer lockFirst(locks)()
	now, err := readIfThere(path)
	if err != nil {
		return err
	}
	next, err := change(now)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	// A reader finds the old text, or the new one with the rest of the old; never an empty file.
	_, err = file.WriteAt(next, 0)
	if err == nil {
		err = file.Truncate(int64(len(next)))
	}
	return errors.Join(err, file.Close())
}

// lockFirst takes the first lock that can be taken, and returns how it is given back. Without any, as on a file system
// that has no locks, the file is changed all the same: commands that change it at once are rare.
func lockFirst(locks []*flock.Flock) (unlock func()) {
	for _, lock := range locks {
		if lock.Lock() == nil {
			return func() { _ = lock.Close() }
		}
	}
	return func() {}
}

// locksOf returns the locks of the file at a path, the best first. That is another file, in the user's cache: beside
// that one it would be in the way, and on some systems a locked file cannot be written. Files share the few locks that
// there are. Where the cache cannot be used, as without HOME, it is the file's directory, which nothing is left in.
func locksOf(path string) (locks []*flock.Flock, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if cache, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(cache, "deployctl", "locks")
		_ = os.MkdirAll(cache, 0o700) // else it cannot be locked
		sum := sha256.Sum256([]byte(path))
		locks = append(locks, flock.New(filepath.Join(cache, hex.EncodeToString(sum[:1])), flock.SetPermissions(0o600)))
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return append(locks, flock.New(dir, flock.SetFlag(os.O_RDONLY))), nil
}

// readIfThere returns the text of a file; nil if there is none.
func readIfThere(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && text == nil {
		text = []byte{}
	}
	return text, err
}
