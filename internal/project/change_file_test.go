package project

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"
)

// addAtOnce has several commands add a line each to a file in a directory that is not there yet, and returns the
// directory.
func addAtOnce(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(dir, "Pulumi.dev.yaml")
	atOnce(crowd, func(i int) {
		err := ChangeFile(path, func(now []byte) ([]byte, error) { return fmt.Appendf(now, "key%d\n", i), nil })
		if err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != crowd {
		t.Errorf("of %d lines there are\n%s%v", crowd, text, err)
	}
	return dir
}

// A file is changed also where the cache, in which it is locked, cannot be used; nothing is left beside it.
func TestAFileIsChangedAndLockedWithoutTheCache(t *testing.T) {
	blocked := func(make func(locks string) error) func(t *testing.T) {
		return func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("XDG_CACHE_HOME", "")
			cache, err := os.UserCacheDir()
			if err != nil {
				t.Fatal(err)
			}
			locks := filepath.Join(cache, "deployctl", "locks")
			if err := os.MkdirAll(filepath.Dir(locks), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := make(locks); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, lay := range map[string]func(t *testing.T){
		"without HOME": func(t *testing.T) { t.Setenv("HOME", ""); t.Setenv("XDG_CACHE_HOME", "") },
		"the directory of locks cannot be made": blocked(func(locks string) error {
			return os.WriteFile(locks, nil, 0o600)
		}),
		"no lock can be opened": blocked(func(locks string) error {
			for i := range 256 { // directories in their places
				if err := os.MkdirAll(filepath.Join(locks, fmt.Sprintf("%02x", i)), 0o700); err != nil {
					return err
				}
			}
			return nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			lay(t)
			left, err := os.ReadDir(addAtOnce(t))
			if err != nil || len(left) != 1 {
				t.Errorf("in its directory are %v, %v", left, err)
			}
		})
	}
}

func TestAFileThatCannotBeLockedIsChanged(t *testing.T) {
	none := flock.New(filepath.Join(t.TempDir(), "missing", "lock"))
	last := flock.New(filepath.Join(t.TempDir(), "lock"))
	unlock := lockFirst([]*flock.Flock{none, last})
	if !last.Locked() {
		t.Error("the lock that can be taken is not taken")
	}
	unlock()
	if last.Locked() {
		t.Error("the lock is not given back")
	}
	lockFirst([]*flock.Flock{none})()
}
