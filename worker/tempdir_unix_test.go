//go:build unix

package worker

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// It ends: to open a pipe waits for whoever has its other end.
func TestWhatIsNotAWorkersDirectoryKeepsNoWorkerFromStartingAndStays(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	outside := filepath.Join(t.TempDir(), "outside")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	made := map[string]func(dir string) error{
		"a pipe for its lock":         func(dir string) error { return syscall.Mkfifo(inUse(dir), 0o666) },
		"a link for its lock":         func(dir string) error { return os.Symlink(outside, inUse(dir)) },
		"a link to a file there":      func(dir string) error { return os.Symlink(parent, inUse(dir)) },
		"a directory for its lock":    func(dir string) error { return os.Mkdir(inUse(dir), 0o700) },
		"nothing yet, being created":  func(string) error { return nil },
		"of a directory, only a link": func(dir string) error { must(os.Remove(dir)); return os.Symlink(t.TempDir(), dir) },
	}
	dirs := map[string]string{}
	for what, build := range made {
		dir, err := os.MkdirTemp(parent, temporary)
		must(err)
		must(build(dir))
		dirs[what] = dir
	}
	_, remove, err := TemporaryDir(nil)
	must(err)
	defer remove()
	for what, dir := range dirs {
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("what has %s was removed: %v", what, err)
		}
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("a link made the worker create a file")
	}
}

func TestTheDirectoryOfAnotherUserStays(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, temporary+"1")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inUse(dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	removeAbandoned(parent, os.Geteuid()+1)
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("it was removed by a worker of another user: %v", err)
	}
	removeAbandoned(parent, os.Geteuid())
	if _, err := os.Stat(dir); err == nil {
		t.Error("it was not removed by a worker of its own user")
	}
}
