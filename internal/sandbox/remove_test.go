package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// descriptors is how many files this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not tell")
	}
	return len(open)
}

func TestATreeIsRemovedWithFewDescriptorsHoweverDeepItIs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell how many files are open")
	}
	parent := t.TempDir()
	const deep = 500
	at, err := os.OpenRoot(parent)
	if err != nil {
		t.Fatal(err)
	}
	for range deep {
		next, err := at, at.Mkdir("d", 0o700)
		if err == nil {
			next, err = at.OpenRoot("d")
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = at.Close()
		at = next
	}
	_ = at.Close()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.WriteFile(filepath.Join(parent, "d", "file"), nil, 0o400),
		os.Symlink(filepath.Dir(outside), filepath.Join(parent, "d", "link")),
		os.Mkdir(filepath.Join(parent, "d", "locked"), 0o700),
		os.WriteFile(filepath.Join(parent, "d", "locked", "file"), nil, 0o400),
		os.Chmod(filepath.Join(parent, "d", "locked"), 0),
		os.Chmod(filepath.Join(parent, "d", "d", "d"), 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before, most := descriptors(t), 0
	done := make(chan error, 1)
	go func() { done <- RemoveAll(filepath.Join(parent, "d")) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
				t.Errorf("it leaves %v, %v", left, err)
			}
			if _, err := os.Stat(outside); err != nil {
				t.Errorf("what a link leads to: %v", err)
			}
			if most > before+20 {
				t.Errorf("%d descriptors were open, and %d before", most, before)
			}
			return
		default:
			most = max(most, descriptors(t))
		}
	}
}

// TestADirectoryWithTooManyEntriesIsNotListed lists what a program has filled.
func TestADirectoryWithTooManyEntriesIsNotListed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := Open()
	if all, err := b.ReadDir(dir, 2); err != nil || len(all) != 2 || all[0].Name() != "a" {
		t.Errorf("%v, %v", all, err)
	}
	if all, err := b.ReadDir(dir, 1); err == nil || len(all) > 0 {
		t.Errorf("of two entries, %d are one at most", len(all))
	}
	if all, err := b.ReadDir(t.TempDir(), 1); err != nil || len(all) > 0 {
		t.Errorf("an empty directory has %v, %v", all, err)
	}
}
