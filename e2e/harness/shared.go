package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// caches are variables of tools, each with the directory in which this user has what the tool has compiled or
// downloaded. A home of its own for each test would begin without, which takes minutes.
var caches = sync.OnceValues(func() (env []string, err error) {
	text, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return nil, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dirs := append(strings.Fields(string(text)), filepath.Join(home, ".npm"), filepath.Join(cache, "pip"),
		filepath.Join(cache, "uv"))
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR"} {
		if err := os.MkdirAll(dirs[i], 0o700); err != nil {
			return nil, err
		}
		env = append(env, name+"="+dirs[i])
	}
	return env, nil
})

// Shared is an environment in which programs use the caches of this user, and may write where tests have their
// directories.
func Shared() ([]string, error) {
	env, err := caches()
	if err != nil {
		return nil, err
	}
	dirs := []string{os.TempDir()}
	for _, variable := range env {
		_, dir, _ := strings.Cut(variable, "=")
		dirs = append(dirs, dir)
	}
	return append(env[:len(env):len(env)], "DEPLOYCTL_SANDBOX_SHARED="+strings.Join(dirs, ":")), nil
}
