package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// What is learned of a file is learned from the descriptor that Open returns: a program can put something else in its
// place at any time.

// Open opens a file or a directory for reading that a program has named, if the program itself could read it. Pipes and
// devices, which may have no end, are refused, and so is what the system says of the process that reads it, below
// /proc. What the system links to there, the files and directories of other processes, is not found: this process may
// follow such links where the program may not.
func (b *Box) Open(path string) (*os.File, error) {
	var file *os.File
	err := b.Do(func() (err error) {
		if b.Apart() {
			file, err = openWithoutMagic(b.outside(path))
		} else {
			file, err = os.OpenFile(path, os.O_RDONLY|nonblocking, 0)
		}
		return err
	})
	if named := (*os.PathError)(nil); errors.As(err, &named) {
		named.Path = path // as the program has named it
	}
	if err != nil {
		return nil, err
	}
	if b != nil && b.policy.Mode() == Namespace {
		err = b.visible(file, path)
	}
	if err == nil {
		err = ordinary(file, path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ordinary is an error unless a file is a directory or has content of its own.
func ordinary(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.IsDir() && !info.Mode().IsRegular() || ofTheKernel(file) {
		return fmt.Errorf("%s is neither a directory nor a file with content of its own", path)
	}
	return nil
}

// maxFile bounds the files that are read whole: those of programs that the worker itself understands are far smaller.
const maxFile = 16 << 20

// ReadFile reads a whole file of at most 16 MiB as Open opens it.
func (b *Box) ReadFile(path string) ([]byte, error) {
	file, err := b.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB: make it smaller", path, maxFile>>20)
	}
	return text, err
}

// visible is an error if a file lies in what the box's processes do not see: the same as if it were not there.
func (b *Box) visible(file *os.File, path string) error {
	real, err := realPath(file)
	if err != nil {
		return err
	}
	if b.whole().hides(real) {
		return &os.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
	}
	return nil
}

// below tells whether a path is a directory or in it.
func below(dir, path string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest)
}

// Stat describes what Open opens.
func (b *Box) Stat(path string) (fs.FileInfo, error) {
	file, err := b.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return file.Stat()
}

// RealPath returns where Open finds a file or a directory, whatever links lead there.
func (b *Box) RealPath(path string) (string, error) {
	file, err := b.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	return realPath(file)
}

// ReadDir returns the entries of a directory that Open opens, by their names. Of one with more than most it returns an
// error, and has kept no more.
func (b *Box) ReadDir(path string, most int) ([]fs.DirEntry, error) {
	dir, err := b.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return readDir(dir, path, most)
}

func readDir(dir *os.File, path string, most int) ([]fs.DirEntry, error) {
	entries, err := dir.ReadDir(most + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if len(entries) > most {
		return nil, fmt.Errorf("%s has more than %d entries", path, most)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// Executable returns the path of an executable that a program has named, with the extension that the system needs, if
// the program itself could find it. It need not be readable.
func (b *Box) Executable(path string) (string, error) {
	outside, found := b.outside(path), ""
	var err error
	if b != nil && b.policy.Mode() == Namespace { // there the worker looks itself, and sees more
		err = b.shows(outside)
	}
	if err == nil {
		err = b.Do(func() (err error) { found, err = exec.LookPath(outside); return err })
	}
	if named := (*exec.Error)(nil); errors.As(err, &named) {
		err = named.Err
	}
	if err != nil {
		return "", &exec.Error{Name: path, Err: err}
	}
	return path + strings.TrimPrefix(found, outside), nil
}

// shows is an error if a file lies in what the box's processes do not see: the same as if it were not there.
func (b *Box) shows(path string) error {
	real, err := filepath.EvalSymlinks(path) // nothing is opened there
	at := (*fs.PathError)(nil)
	switch {
	case err == nil && !b.whole().hides(real):
		return nil
	case errors.As(err, &at) && !b.whole().hides(at.Path):
		return err
	}
	return syscall.ENOENT
}

// FS is a directory of which all is opened as Open does. Unlike those of os.DirFS, its links lead anywhere where a
// program could go itself.
func (b *Box) FS(dir string) fs.FS { return tree{b, dir} }

type tree struct {
	box *Box
	dir string
}

func (t tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, err := t.box.Open(filepath.Join(t.dir, filepath.FromSlash(name)))
	if err != nil {
		return nil, err // a nil *os.File is none
	}
	return file, nil
}

// IsLink reports whether a symbolic link lies at a path. Whether it does when the path is opened, nobody knows.
func (b *Box) IsLink(path string) bool {
	return b.Do(func() error { _, err := os.Readlink(b.outside(path)); return err }) == nil
}
