//go:build unix

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
)

// endlessSteps has the updates of another organization create what its cloud never answers, in more steps than a worker
// has slots. An update of the victim goes on meanwhile, and theirs do when their cloud answers.
func endlessSteps(t *testing.T, f *field) {
	cloud, env := harness.Cloud(t)
	harness.Must(t, cloud.Set(t.Context(), fakecloud.Fault{Name: "never", Do: fakecloud.Hold, Op: fakecloud.Create}))
	var held []*exec.Cmd
	for i := range 5 {
		dir, name := t.TempDir(), fmt.Sprint("endless-", i)
		harness.Files{"Pulumi.yaml": "name: " + name + "\nruntime: scenario\n",
			"scenario.yaml": "packages: [{name: fake, version: 0.1.0}]\n" +
				"steps: [{repeat: 800, steps: [{register: \"r{{i}}\", type: fake:index:Auto}]}]\n"}.Write(t, dir)
		tool := f.Deployctl(dir, env)
		tool.Must(t, "stack", "init", "rival/"+name+"/dev")
		up := exec.Command(tool.Path, "up", "--yes", "--skip-preview", "--parallel", "500")
		up.Dir, up.Env = tool.Dir, tool.Env
		harness.Must(t, up.Start())
		held = append(held, up)
	}
	const granted = 500 + 250 + 125 + 62 + 31
	harness.Eventually(t, "the organization's updates have all the steps that they get", func() bool {
		faults, err := cloud.Faults(t.Context())
		harness.Must(t, err)
		return faults[0].Held >= granted
	})
	for range 3 {
		f.victim.Update(t, "refresh")
		f.victim.Update(t, "up")
	}
	harness.Must(t, cloud.Lift(t.Context(), "never"))
	for _, up := range held {
		if err := up.Wait(); err != nil {
			t.Errorf("%s: an update that had to wait ends with %v", up.Dir, err)
		}
	}
	made, err := cloud.Objects(t.Context(), "")
	harness.Must(t, err)
	twice, err := cloud.Duplicates(t.Context())
	harness.Must(t, err)
	if len(made) != 5*800 || len(twice) > 0 {
		t.Errorf("there are %d objects of 4,000, of which %d are there twice", len(made), len(twice))
	}
}

// logs is what the service has logged.
func (f *field) logs(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(f.State(), "logs", "*.log"))
	harness.Must(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		harness.Must(t, err)
		all.Write(text)
	}
	return all.String()
}
