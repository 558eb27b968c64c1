package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/deployctl/deployctl/internal/sandbox"
)

// Variable returns a variable of an environment, in which the last of equal names counts. It returns false if the
// variable is missing, true if it is empty.
func Variable(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		key, value, _ := strings.Cut(env[i], "=")
		if key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name) {
			return value, true
		}
	}
	return "", false
}

// Self returns the path by which a child becomes this binary under another name, also when the file was replaced where
// the system allows that.
func Self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// Look returns the path of an executable on the PATH of an environment, which may differ from ours and be anybody's: a
// process in the box could execute it. It ignores relative directories in PATH.
func Look(box *sandbox.Box, env []string, name string) (string, error) {
	path, _ := Variable(env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := box.Executable(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
