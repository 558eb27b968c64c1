//go:build unix

package languagehost_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/peertest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestTheStockCLIRunsProgramsOverOurHosts(t *testing.T) {
	soaktest.Only(t)
	cli := peertest.Path(t, "pulumi")
	t.Parallel()
	for runtime, dir := range map[string]string{"nodejs": nodeDir(t), "go": goDir(t)} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{
				"Pulumi.yaml": "name: test\nruntime: " + runtime + "\n",
				"index.js": `
const pulumi = require("@pulumi/pulumi");
console.log("hello from the program");
exports.size = new pulumi.Config().requireNumber("size");`,
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			path := bin(t, runtime) + string(os.PathListSeparator) + os.Getenv("PATH")
			pulumi := func(args ...string) string {
				cmd := exec.Command(cli, append(args, "--non-interactive")...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+path, "PULUMI_HOME="+filepath.Join(dir, ".home"),
					"PULUMI_BACKEND_URL=file://"+dir, "PULUMI_CONFIG_PASSPHRASE=x", "PULUMI_SKIP_UPDATE_CHECK=true",
					"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("pulumi %s: %v\n%s", strings.Join(args, " "), err, out)
				}
				return string(out)
			}
			pulumi("stack", "init", "dev")
			pulumi("config", "set", "size", "3")
			if out := pulumi("up", "--yes", "--skip-preview"); !strings.Contains(out, "hello from the program") {
				t.Error(out)
			}
			if size := strings.TrimSpace(pulumi("stack", "output", "size")); size != "3" {
				t.Errorf("size is %q", size)
			}
			pulumi("destroy", "--yes", "--skip-preview")
		})
	}
}
