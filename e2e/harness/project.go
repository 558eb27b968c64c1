package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Files is a project's, by path.
type Files map[string]string

// Write writes the files below a directory.
func (f Files) Write(t *testing.T, dir string) {
	t.Helper()
	for name, text := range f {
		path := filepath.Join(dir, name)
		Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// Example copies an example into a directory of the test's own.
func Example(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	Must(t, os.CopyFS(dir, os.DirFS(filepath.Join(Root(), "examples", name))))
	return dir
}

// Edit replaces a text in a file that must contain it.
func Edit(t *testing.T, path, old, with string) {
	t.Helper()
	text, err := os.ReadFile(path)
	Must(t, err)
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s does not contain %q", path, old)
	}
	Must(t, os.WriteFile(path, []byte(strings.Replace(string(text), old, with, 1)), 0o600))
}

// Cloud starts a fake cloud that ends with the test, and gives the environment variable that leads providers there.
func Cloud(t *testing.T) (cloud *fakecloud.Process, env string) {
	t.Helper()
	peers, err := Peers()
	Must(t, err)
	path, err := exec.LookPath(filepath.Join(peers[1], "fakecloud"))
	Must(t, err)
	cloud, err = fakecloud.Launch(path)
	Must(t, err)
	t.Cleanup(func() { Must(t, cloud.Stop()) })
	return cloud, "FAKECLOUD_ENDPOINT=" + cloud.URL()
}

// Changes counts the resources of an update by what was done to them.
type Changes map[string]int

// Report is what an update did.
type Report struct {
	Changes Changes
	Steps   []string // each as "OP NAME [what changed]", in order; without those that left a resource as it was
}

// Update runs up, refresh, preview or destroy to a successful end.
func (r *Tool) Update(t *testing.T, kind string, args ...string) Report {
	t.Helper()
	args = append([]string{kind, "--json"}, args...)
	if kind != "preview" {
		args = append(args, "--yes", "--skip-preview")
	}
	lines := strings.Split(strings.TrimSpace(r.Must(t, args...)), "\n")
	var summary struct {
		Type, Result string
		Changes      Changes
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &summary); err != nil || summary.Result != "succeeded" {
		t.Fatalf("%s ends with %s (%v)", kind, lines[len(lines)-1], err)
	}
	maps.DeleteFunc(summary.Changes, func(_ string, n int) bool { return n == 0 })
	report := Report{Changes: summary.Changes}
	for _, line := range lines[:len(lines)-1] {
		var e apitype.EngineEvent
		Must(t, json.Unmarshal([]byte(line), &e))
		if e.ResOutputsEvent != nil && e.ResOutputsEvent.Metadata.Op != apitype.OpSame {
			m := e.ResOutputsEvent.Metadata
			report.Steps = append(report.Steps, fmt.Sprintf("%s %s %v", m.Op, m.URN[strings.LastIndex(m.URN, "::")+2:],
				m.Diffs))
		}
	}
	return report
}

// Expect runs an update that must make exactly these changes.
func (r *Tool) Expect(t *testing.T, want Changes, kind string, args ...string) {
	t.Helper()
	if got := r.Update(t, kind, args...); !maps.Equal(got.Changes, want) {
		t.Errorf("%s: the changes are %v, not %v: %v", kind, got.Changes, want, got.Steps)
	}
}

// Outputs are the stack's, secrets shown.
func (r *Tool) Outputs(t *testing.T) (values map[string]any) {
	t.Helper()
	Must(t, json.Unmarshal([]byte(r.Must(t, "stack", "output", "--json", "--show-secrets")), &values))
	return values
}

// Deployment is the stack's state.
func (r *Tool) Deployment(t *testing.T) (d apitype.DeploymentV3) {
	t.Helper()
	var state apitype.UntypedDeployment
	Must(t, json.Unmarshal([]byte(r.Must(t, "stack", "export")), &state))
	Must(t, json.Unmarshal(state.Deployment, &d))
	return d
}
