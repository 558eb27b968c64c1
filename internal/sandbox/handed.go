package sandbox

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Handed is a directory with small files that this process hands to the processes of one box. They read the files, and
// cannot change them where they are kept apart. Close it.
//
// In mode Namespace no other box sees the directory. Under RunAs, where the boxes of an organization have one user, its
// name cannot be guessed, and nobody can list the directory above it: only who was told the path reads the files.
type Handed struct {
	// Path is where the box's processes find the directory.
	Path string
	box  *Box
	mode os.FileMode // of files
}

// handed is the part of a room with such directories, which is this process's own.
const handed = "handed"

// leftAfter is how long nothing was written in a directory of a worker that was killed before it is removed.
const leftAfter = time.Hour

// Hand makes a directory of files for the box's processes. Call it once, before the first of them starts.
func (b *Box) Hand() (*Handed, error) {
	if b == nil || b.room == "" {
		dir, err := os.MkdirTemp("", "deployctl-"+handed+"-")
		return &Handed{Path: dir, box: b, mode: 0o600}, err
	}
	if b.policy.Mode() == Namespace {
		dir := filepath.Join(b.aside, handed)
		b.handed = dir
		return &Handed{Path: dir, box: b, mode: 0o600}, os.Mkdir(dir, 0o700)
	}
	above := filepath.Join(b.room, handed)
	if err := b.passed(os.MkdirAll(above, 0o700), above, 0o710); err != nil {
		return nil, err
	}
	removeLeft(above)
	dir := filepath.Join(above, rand.Text())
	h := &Handed{Path: dir, box: b, mode: 0o600}
	if b.id != nil {
		h.mode = 0o640
	}
	return h, b.passed(os.Mkdir(dir, 0o700), dir, 0o710)
}

// passed lets the group of the box's user have an access to what this process has made.
func (b *Box) passed(made error, path string, mode os.FileMode) error {
	if made != nil || b == nil || b.id == nil {
		return made
	}
	return errors.Join(os.Lchown(path, -1, b.id.gid), os.Chmod(path, mode))
}

// removeLeft removes the directories of workers that were killed.
func removeLeft(above string) {
	entries, _ := os.ReadDir(above) // what cannot be listed stays
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > leftAfter {
			_ = os.RemoveAll(filepath.Join(above, e.Name()))
		}
	}
}

// Write writes a file, whole, in place of one that may be there.
func (h *Handed) Write(name string, data []byte) error {
	f, err := os.CreateTemp(h.Path, "."+name+"-")
	if errors.Is(err, fs.ErrNotExist) { // nothing was written for so long that it was taken for one that was left
		if err = h.box.passed(os.Mkdir(h.Path, 0o700), h.Path, 0o710); err == nil {
			f, err = os.CreateTemp(h.Path, "."+name+"-")
		}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err = h.box.passed(err, f.Name(), h.mode); err == nil {
		err = os.Rename(f.Name(), filepath.Join(h.Path, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Close removes the directory. A nil Handed has none.
func (h *Handed) Close() error {
	if h == nil {
		return nil
	}
	return os.RemoveAll(h.Path)
}
