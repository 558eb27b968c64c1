package sandbox

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll removes a file, or a directory with all that is in it, as that of os.Root does, but holds three descriptors
// however deep it is: a program can leave a tree that is deeper than this process may have files open.
func (d Directory) RemoveAll(path string) error { return removeIn(d.Root, path) }

// RemoveAll removes what lies at a path in the same way.
func RemoveAll(path string) error {
	parent, err := os.OpenRoot(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	return removeIn(parent, filepath.Base(path))
}

func removeIn(root *os.Root, path string) error {
	err := root.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, failed := root.Lstat(path)
	if failed != nil || !info.IsDir() {
		return err
	}
	top, err := openOwn(root, path)
	if err != nil {
		return err
	}
	defer func() { _ = top.Close() }()
	if opened, err := top.Lstat("."); err != nil || !os.SameFile(info, opened) {
		return errors.Join(err, &fs.PathError{Op: "remove", Path: path, Err: errors.New("it was replaced meanwhile")})
	}
	if err := clear(top); err != nil {
		return err
	}
	return root.Remove(path)
}

// openOwn opens a directory, whose owner may have taken the rights to it away.
func openOwn(root *os.Root, path string) (*os.Root, error) {
	dir, err := root.OpenRoot(path)
	if errors.Is(err, fs.ErrPermission) && root.Chmod(path, 0o700) == nil {
		dir, err = root.OpenRoot(path)
	}
	return dir, err
}

// batch is how many entries of a directory are read at once.
const batch = 1000

// clear removes all that is in a directory: it moves what directories in it contain up into it, until all are empty.
func clear(top *os.Root) error {
	for {
		names, err := entries(top)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := top.Remove(name); err == nil || errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err := flatten(top, name, err); err != nil {
				return err
			}
		}
	}
}

// flatten removes a directory whose removal has failed.
func flatten(top *os.Root, name string, failed error) error {
	if info, err := top.Lstat(name); err != nil || !info.IsDir() {
		return failed
	}
	_ = top.Chmod(name, 0o700) // its owner may have taken the rights away; a link leads nowhere but into this tree
	dir, err := openOwn(top, name)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	for {
		names, err := entries(dir)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return top.Remove(name)
		}
		for _, below := range names {
			if err := dir.Remove(below); err == nil || errors.Is(err, fs.ErrNotExist) {
				continue
			}
			_ = dir.Chmod(below, 0o700) // one that cannot be written cannot be moved
			if err := top.Rename(filepath.Join(name, below), rand.Text()); err != nil {
				return err
			}
		}
	}
}

// entries reads some of the names in a directory.
func entries(dir *os.Root) ([]string, error) {
	file, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	names, err := file.Readdirnames(batch)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}
