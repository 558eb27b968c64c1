package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNothingRunsInADirectoryThatSomebodyElseHasMadeInThePlaceOfTheWorkers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes directories of others")
	}
	const stranger = 54321
	worker := filepath.Join(t.TempDir(), "worker")
	rooms := filepath.Join(worker, "organizations")
	for _, theirs := range []string{worker, rooms} {
		if err := os.MkdirAll(rooms, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(theirs, stranger, stranger); err != nil {
			t.Fatal(err)
		}
		if b, err := (&Policy{}).Box("acme", rooms); err == nil || !strings.Contains(err.Error(), "is not this user's") {
			t.Errorf("%s is used: %v %v", theirs, b, err)
		}
		if err := os.RemoveAll(worker); err != nil { // as a cleaner of TMPDIR does
			t.Fatal(err)
		}
	}
}
