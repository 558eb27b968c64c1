package workflows

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/mutanttest"
)

// indeterminate are changes that must not pass, each with the check that rejects it.
var indeterminate = []struct{ name, file, old, now, notices string }{
	{
		"a workflow reads the clock", "workflows/call.go",
		`round := r.in.Rounds[s.Op] + 1`, `round := r.in.Rounds[s.Op] + 1 + 0*time.Now().Second()`, "workflowcheck",
	},
	{
		"the core ranges over a map", "engine/replies.go",
		`certain := old != nil &&`, "for range r.marks {\n\t\t_ = e\n\t}\n\tcertain := old != nil &&", "workflowcheck",
	},
	{
		"a workflow starts a timer that it did not start before", "workflows/saver.go",
		"\ts.collectResult(ctx)\n\tif s.timer",
		"\ts.collectResult(ctx)\n\t_ = workflow.NewTimer(ctx, saveEvery)\n\tif s.timer", "replay",
	},
	{
		"a workflow calls another activity than before", "workflows/saver.go",
		`deployments.ActivitySave`, `deployments.ActivityReadHeaders`, "replay",
	},
}

// TestAChangeThatIsNotDeterministicIsNoticed runs the repository's checks, in a copy of it, against such
// changes.
func TestAChangeThatIsNotDeterministicIsNoticed(t *testing.T) {
	mutanttest.Only(t)
	dir := t.TempDir()
	checker, err := exec.CommandContext(t.Context(), "../tools/cached", "workflowcheck",
		"go.temporal.io/sdk/contrib/tools/workflowcheck").Output()
	if err != nil {
		t.Fatal(err)
	}
	checks := map[string][]string{
		"workflowcheck": {strings.TrimSpace(string(checker)), "-config", "tools/workflowcheck/config.yaml", "./workflows",
			"./engine"},
		"replay": {"go", "test", "-short", "-vet=off", "-run", "^TestRecordedHistoriesReplay$", "./workflows"},
	}
	check := func(name string) (string, error) {
		cmd := exec.CommandContext(t.Context(), checks[name][0], checks[name][1:]...) //nolint:gosec // one of the above
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	copyTree(t, "..", dir)
	for name := range checks {
		if out, err := check(name); err != nil {
			t.Fatalf("%s fails without a change: %v\n%s", name, err, out)
		}
	}
	for _, c := range indeterminate {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(dir, c.file)
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(source), c.old) != 1 {
				t.Fatalf("%s no longer has exactly one %q: write the change anew", c.file, c.old)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(source), c.old, c.now, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := check(c.notices)
			if err == nil {
				t.Errorf("%s does not notice", c.notices)
			} else if !strings.Contains(out, "non-deterministic") && !strings.Contains(out, "TMPRL1100") {
				t.Errorf("%s fails for another reason: %v\n%s", c.notices, err, out)
			}
			if err := os.WriteFile(file, source, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// copyTree copies the part of the repository that the checks need.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	for _, part := range []string{"go.mod", "go.sum", "api", "activities", "client", "deployments", "engine",
		"internal", "statestore", "tools/workflowcheck", "workflows"} {
		err := filepath.WalkDir(filepath.Join(from, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rest, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path) //nolint:gosec // of this repository
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(to, rest)), 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, rest), data, 0o700) //nolint:gosec // one of them is run
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
