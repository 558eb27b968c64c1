package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// edits is how many rounds of edits a watched project goes through.
const edits = 50

// watched is a website whose files and program are edited.
type watched struct {
	*project
	program string              // the file of the program
	broken  func(string) string // makes it one that fails
	says    string              // what is said of that
	objects int                 // how many resources it has
}

// Some edits break the program, some are two at once, and the service is killed in the middle. The website is always
// what the last edit made of it.
func TestAWatchedWebsiteFollowsItsFiles(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newHome(t).in(filepath.Join(t.TempDir(), "website"))
	must(t, os.CopyFS(s.dir, os.DirFS(filepath.Join(root, "examples", "website"))))
	watched{s, "Pulumi.yaml", func(program string) string {
		return strings.Replace(program, "deployctl:s3:Directory", "deployctl:s3:Dictionary", 1)
	}, "Dictionary", 10}.edit(t)
}

// siteInNode makes a website of two files.
const siteInNode = `const fs = require("fs"), pulumi = require("@pulumi/pulumi");
class Thing extends pulumi.CustomResource {
    constructor(type, name, args, outputs) {
        super("deployctl:s3:" + type, name, { ...args, ...outputs });
    }
}
const site = new Thing("Bucket", "site", { publicRead: true, forceDestroy: true }, { name: undefined, url: undefined });
for (const key of fs.readdirSync("www")) {
    new Thing("Object", key, { bucket: site.name, key, content: fs.readFileSync("www/" + key, "utf8") });
}
exports.url = pulumi.interpolate` + "`${site.url}/index.html`" + `;
`

// TestAWatchedNodeProjectFollowsItsFiles is its sibling, whose program reads what is edited.
func TestAWatchedNodeProjectFollowsItsFiles(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newHome(t).in(filepath.Join(t.TempDir(), "site"))
	s.write(t, "Pulumi.yaml", "name: site\nruntime: nodejs\n")
	s.write(t, "package.json", `{"name": "site", "main": "index.js", "dependencies": {"@pulumi/pulumi": "3.248.0"}}`)
	s.write(t, "index.js", siteInNode)
	s.write(t, "www/index.html", "<p>begun</p>")
	s.write(t, "www/style.css", "p {}")
	watched{s, "index.js", func(program string) string { return program + "const = undefined;" }, "SyntaxError", 4}.edit(t)
}

// edit watches the project while it is edited.
func (s watched) edit(t *testing.T) {
	s.must(t, "stack", "init", "dev")
	write := func(name, text string) { must(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644)) }
	program, err := os.ReadFile(filepath.Join(s.dir, s.program))
	must(t, err)
	watch := s.start(t, "watch", "--yes")
	const waits = "Watching for changes"
	watch.saysAgain(t, waits, 1)
	url := strings.TrimSuffix(s.must(t, "stack", "output", "url"), "index.html\n")
	served := func(name, text string) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s is %q", name, text), func() bool { return body(t, url+name) == text })
	}
	for n := range edits {
		index, style := fmt.Sprintf("<p>%d</p>", n), fmt.Sprintf("p { margin: %dpx }", n)
		switch {
		case n%10 == 3: // broken, and then repaired
			write(s.program, s.broken(string(program)))
			watch.saysAgain(t, "changed: "+s.program, 2*(n/10)+1)
			watch.saysAgain(t, s.says, n/10+1)
			write("www/index.html", index)
			write(s.program, string(program))
		case n%10 == 7: // two at once
			write("www/index.html", index)
			write("www/style.css", style)
			served("style.css", style)
		case n == edits/2:
			write("www/index.html", "<p>lost?</p>")
			watch.saysAgain(t, "changed: www/index.html", 1)
			s.killService(t)
			write("www/index.html", index)
		default:
			write("www/index.html", index)
		}
		served("index.html", index)
	}
	watch.interrupt(t)
	watch.wait(t) // with 130 if its last update was running
	s.update(t, "up").expect(t, map[string]int{"same": s.objects})
	s.update(t, "destroy").expect(t, map[string]int{"delete": s.objects})
}

func TestDevWatchesOnTheEmbeddedService(t *testing.T) {
	t.Parallel()
	s := newHome(t).in(t.TempDir())
	says := func(what string) {
		program := "name: watched\nruntime: yaml\noutputs: {said: " + what + "}\n"
		must(t, os.WriteFile(filepath.Join(s.dir, "Pulumi.yaml"), []byte(program), 0o644))
	}
	says("one")
	s.must(t, "stack", "init", "dev")
	watch := s.start(t, "dev", "--watch", "--yes", "--stack", "dev")
	watch.saysAgain(t, "Watching for changes", 1)
	says("two")
	eventually(t, "the output is of the edit", func() bool { return s.must(t, "stack", "output", "said") == "two\n" })
	watch.interrupt(t)
	watch.wait(t) // with 130 if its last update was running
	late := s.run(t, "dev", "--watch", "--metrics-listen", "127.0.0.1:0")
	if said := late.stderr.String(); late.code == 0 || !strings.Contains(said, "takes effect at the start") {
		t.Errorf("it ends with %d: %s", late.code, said)
	}
}

// body returns what a server answers; "" while there is no answer, or none with the status OK.
func body(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url) //nolint:gosec // the stack's own output
	if err != nil {
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	page, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return ""
	}
	return string(page)
}
