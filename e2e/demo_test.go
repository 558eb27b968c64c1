package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// TestTheDemoRunsAgain is `make demo`, twice, for a user who has no peers of the tests yet.
func TestTheDemoRunsAgain(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := newHome(t)
	env := append(h.env, "DEMO_DIR="+filepath.Join(h.dir, "site"), "XDG_CACHE_HOME="+filepath.Join(h.dir, "cache"))
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // what go has compiled is not made anew
		value, err := exec.Command("go", "env", name).Output()
		must(t, err)
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	for _, says := range []string{"created", "nothing changed"} {
		cmd := exec.Command(filepath.Join(root, "tools", "demo"))
		cmd.Env = append(cmd.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("the demo: %v\n%s", err, out)
		}
		for _, text := range []string{says, "200 text/html", "Temporal Web UI", "deployctl dev stop"} {
			if !strings.Contains(string(out), text) {
				t.Errorf("it does not say %q but\n%s", text, out)
			}
		}
	}
}
