package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheDemoRunsAgain is `make demo`, twice.
func TestTheDemoRunsAgain(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	site := filepath.Join(h.dir, "site")
	for _, says := range []string{"created", "nothing changed"} {
		cmd := exec.Command(filepath.Join(root, "tools", "demo"))
		cmd.Env = append(cmd.Environ(), append(h.env, "DEMO_DIR="+site)...)
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
