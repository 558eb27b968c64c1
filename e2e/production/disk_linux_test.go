package production

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

// mount gives the workers a small disk of their own for what is temporary, if this process may.
func (s *service) mount(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(s.dir, "tmp")
	harness.Must(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256m,mode=1777"); err != nil {
		t.Logf("the workers have no disk of their own: %v", err)
		return ""
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill leaves nothing of the workers' disk, and returns what makes room again.
func (s *service) fill(t *testing.T) (empty func()) {
	t.Helper()
	if s.disk == "" {
		t.Skip("a disk that can be filled needs the right to mount one")
	}
	ballast := filepath.Join(s.disk, "ballast")
	file, err := os.Create(ballast)
	harness.Must(t, err)
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err = file.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	_ = file.Close() // it is full
	return func() { harness.Must(t, os.Remove(ballast)) }
}
