//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestAFullDiskIsSaidAndWhatWaitedForItGoesOn(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := newHome(t)
	ports, err := os.ReadFile(filepath.Join(h.state(), "data", "ports.json"))
	must(t, err)
	if err := syscall.Mount("tmpfs", h.state(), "tmpfs", 0, "size=48m,mode=0700"); err != nil {
		t.Skipf("a disk of its own needs privileges: %v", err)
	}
	t.Cleanup(func() {
		must(t, h.end())
		must(t, syscall.Unmount(h.state(), syscall.MNT_DETACH))
	})
	must(t, os.MkdirAll(filepath.Join(h.state(), "data"), 0o700))
	must(t, os.WriteFile(filepath.Join(h.state(), "data", "ports.json"), ports, 0o600))
	s := newStage(t, h)
	s.must(t, "stack", "ls")

	ballast := filepath.Join(h.state(), "ballast")
	must(t, os.WriteFile(ballast, make([]byte, free(t, h.state())-1<<20), 0o600))
	up := s.start(t, "up", "--yes", "--skip-preview")
	up.says(t, "the embedded service cannot write: the disk of "+h.state()+" is full")
	if said := s.must(t, "dev", "status"); !strings.Contains(said, "the disk of "+h.state()+" is full") {
		t.Errorf("the status of a service that cannot write is\n%s", said)
	}
	must(t, os.Remove(ballast))
	up.mustEnd(t, 0)

	s.must(t, "dev", "stop")
	must(t, os.WriteFile(ballast, make([]byte, free(t, h.state())-1<<20), 0o600))
	s.fails(t, 5, []string{"the embedded service cannot write: the disk of " + h.state() + " is full"}, "stack", "ls")
	s.fails(t, 5, []string{"the embedded service cannot write: the disk of " + h.state() + " is full"}, "dev")
	must(t, os.Remove(ballast))
	s.must(t, "stack", "ls")
}

// free is how many bytes may still be written to a file system.
func free(t *testing.T, dir string) uint64 {
	t.Helper()
	var s syscall.Statfs_t
	must(t, syscall.Statfs(dir, &s))
	return s.Bavail * uint64(s.Bsize)
}
