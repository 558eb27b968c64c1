package worker

import (
	"os"
	"testing"

	"github.com/gofrs/flock"
)

func TestTheDirectoryOfAWorkerThatWasKilledIsRemovedByTheNextAndThatOfOneThatRunsIsNot(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	killed, _, err := TemporaryDir(nil)
	if err != nil {
		t.Fatal(err)
	}
	running, remove, err := TemporaryDir(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); err != nil {
		t.Fatalf("the first one is in use, and was removed: %v", err)
	}
	// A lock ends with its process; so does this one, when its file is opened and closed as by another.
	if err := os.Remove(inUse(killed)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inUse(killed), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	third, removeThird, err := TemporaryDir(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer removeThird()
	if _, err := os.Stat(killed); err == nil {
		t.Errorf("%s is still there", killed)
	}
	for _, dir := range []string{running, third} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	if free, err := flock.New(inUse(running)).TryLock(); err != nil || free {
		t.Errorf("the lock of a running worker is free: %v %v", free, err)
	}
	remove()
	if _, err := os.Stat(running); err == nil {
		t.Errorf("%s is still there", running)
	}
}
