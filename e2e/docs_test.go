package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

var (
	exampleBlock = regexp.MustCompile("(?ms)^```yaml\nresources:\n(.*?)^```$")
	shellBlock   = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
)

// blocks returns the blocks of code in a page that match, without the first ones.
func blocks(t *testing.T, page string, pattern *regexp.Regexp, without int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	must(t, err)
	var b strings.Builder
	for _, block := range pattern.FindAllStringSubmatch(string(text), -1)[without:] {
		b.WriteString(block[1])
	}
	return b.String()
}

// TestTheExamplesOfTheReferenceRun deploys the examples of docs/resources.md as one program. An example that begins
// with the name of a project is a program of its own, of a server that is not here.
func TestTheExamplesOfTheReferenceRun(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	p := sharedHome(t).in(t.TempDir())
	resources := blocks(t, "resources.md", exampleBlock, 0)
	p.write(t, "Pulumi.yaml", "name: "+projectName(t)+"\nruntime: yaml\nresources:\n"+resources)
	p.write(t, "www/index.html", "<h1>hello</h1>")
	p.must(t, "stack", "init", "dev")
	// The stack, a bucket, a directory with a file and its index, an object, a command, and a binding of the bucket.
	p.update(t, "up").expect(t, map[string]int{"create": 8, "update": 1})
	p.update(t, "up").expect(t, map[string]int{"same": 8})
	p.update(t, "destroy").expect(t, map[string]int{"delete": 8})
}

// TestGettingStartedRunsAsItIsWritten runs the scripts of docs/getting-started.md in a shell, after the one that builds
// deployctl. The commands that ask get --yes; nothing runs that could be cancelled.
func TestGettingStartedRunsAsItIsWritten(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := newHome(t)
	script := `set -eu
deployctl() {
	case $1 in
	new | up | destroy) "$DEPLOYCTL" "$@" --yes ;;
	cancel) ;;
	*) "$DEPLOYCTL" "$@" ;;
	esac
}
` + blocks(t, "getting-started.md", shellBlock, 1)
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = root, append(h.env, "HOME="+h.dir, "DEPLOYCTL="+binary)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the scripts of the page: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "The embedded service has stopped") {
		t.Errorf("the scripts of the page say\n%s", out)
	}
}
