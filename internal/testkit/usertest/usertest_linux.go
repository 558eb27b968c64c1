package usertest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
)

// variable is set in the environment of a test binary that was started by this package.
const variable = "DEPLOYCTL_TEST_AS_USER"

// users counts the users of this process: processes of one that was used before may still be ending.
var users atomic.Int64

// Again reports whether this process was started by Run.
func Again() bool { return os.Getenv(variable) != "" }

// Run runs tests of this binary, those that a pattern of -test.run means, as a user that nobody else is, with some
// capabilities. It skips the test if this process is not root's.
func Run(t *testing.T, pattern string, capabilities ...uintptr) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	const parent = "/opt"             // neither a home nor a place for temporary files
	err := os.MkdirAll(parent, 0o755) //nolint:gosec // as it is on every machine
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(parent, "usertest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	uid := int(2_000_000_000 + int64(os.Getpid())*8 + users.Add(1)%8)
	binary := filepath.Join(dir, "test")
	if err := copyBinary(binary); err != nil {
		t.Fatal(err)
	}
	home, temp := filepath.Join(dir, "home"), filepath.Join(dir, "tmp")
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // others pass through
		t.Fatal(err)
	}
	for _, own := range []string{home, temp} {
		if err := errors.Join(os.Mkdir(own, 0o711), os.Chown(own, uid, uid)); err != nil { //nolint:gosec // the same
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run="+pattern, "-test.v")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), variable+"=1", "HOME="+home, "TMPDIR="+temp, "XDG_CACHE_HOME=")
	cmd.SysProcAttr = &syscall.SysProcAttr{AmbientCaps: capabilities,
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}} //nolint:gosec // they fit
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as user %d: %v\n%s", uid, err, out)
	}
}

// copyBinary puts this process's binary where every user can run it.
func copyBinary(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // it is run
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, from); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
