package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// TestWhatANewUserDoes walks through the website example on a machine where nothing is configured and nothing runs.
func TestWhatANewUserDoes(t *testing.T) {
	h := newHome(t)
	p := h.in(filepath.Join(t.TempDir(), "website"))
	must(t, os.CopyFS(p.dir, os.DirFS(filepath.Join(root, "examples", "website"))))
	step := func(name string, f func(*testing.T)) {
		if t.Failed() {
			return // each stands on the one before
		}
		t.Run(name, f)
	}

	step("the first command starts the service and says so in a line", func(t *testing.T) {
		r := p.run(t, "stack", "init", "dev")
		r.mustEnd(t, 0)
		if said := strings.Count(r.stderr.String(), "\n"); said != 1 ||
			!strings.Contains(r.stderr.String(), "deployctl dev stop") {
			t.Errorf("it says %q", r.stderr.String())
		}
	})
	step("a preview shows the first update, and up makes it", func(t *testing.T) {
		p.update(t, "preview").expect(t, map[string]int{"create": 10})
		p.update(t, "up").expect(t, map[string]int{"create": 10})
	})
	step("the page answers", func(t *testing.T) {
		if page := fetch(t, p.outputs(t)["url"].(string), "text/html"); !strings.Contains(page, "<h1>") {
			t.Errorf("the page is %q", page)
		}
	})
	step("again, nothing changes, and it says so", func(t *testing.T) {
		p.update(t, "up").expect(t, map[string]int{"same": 10})
		r := p.run(t, "up", "--yes")
		r.mustEnd(t, 0)
		if !strings.Contains(r.stdout.String(), "10 unchanged") || strings.Contains(r.stdout.String(), "updat") {
			t.Errorf("it says\n%s", r.said())
		}
	})
	step("an edited file is one updated object", func(t *testing.T) {
		p.replaceIn(t, "www/about.html", "<body", "<body data-edited")
		for _, kind := range []string{"preview", "up"} {
			got := p.update(t, kind)
			got.expect(t, map[string]int{"update": 1, "same": 9})
			if ops := got.finished(); !slices.Equal(ops, []string{"update www/about.html"}) {
				t.Errorf("%s: %v", kind, ops)
			}
		}
		url := strings.Replace(p.outputs(t)["url"].(string), "index.html", "about.html", 1)
		if page := fetch(t, url, "text/html"); !strings.Contains(page, "data-edited") {
			t.Errorf("the page is %q", page)
		}
	})
	step("a bucket of another name is a replacement, the new one first", func(t *testing.T) {
		before := p.outputs(t)
		p.replaceIn(t, "Pulumi.yaml", "# name: my-own-name", "name: another-name")
		if *soaktest.Full {
			p.update(t, "preview").expect(t, map[string]int{"replace": 8, "update": 1})
		}
		got := p.update(t, "up")
		got.expect(t, map[string]int{"replace": 8, "update": 1})
		ops := got.finished()
		created, deleted := slices.Index(ops, "create-replacement site"), slices.Index(ops, "delete-replaced site")
		if created < 0 || deleted < created {
			t.Errorf("the order is %v", ops)
		}
		if url := p.outputs(t)["url"].(string); !strings.Contains(url, "/another-name/") {
			t.Errorf("the page is at %s", url)
		}
		gone(t, before["url"].(string))
	})
	step("a removed file is one delete", func(t *testing.T) {
		must(t, os.Remove(p.path("www/robots.txt")))
		kinds := []string{"up"}
		if *soaktest.Full {
			kinds = []string{"preview", "up"}
		}
		for _, kind := range kinds {
			got := p.update(t, kind)
			got.expect(t, map[string]int{"delete": 1, "update": 1, "same": 8}) // and the index that lists it
			if ops := got.finished(); !slices.Equal(ops, []string{"update www/files.html", "delete www/robots.txt"}) {
				t.Errorf("%s: %v", kind, ops)
			}
		}
	})
	step("dev stop loses nothing", func(t *testing.T) {
		before := sortedState(p.exported(t))
		if said := p.must(t, "dev", "stop"); !strings.Contains(said, "nothing is lost") {
			t.Errorf("it says %q", said)
		}
		if s := h.status(t); s.State != "stopped" {
			t.Errorf("the service is %s", s.State)
		}
		p.update(t, "up").expect(t, map[string]int{"same": 9})
		if after := sortedState(p.exported(t)); !slices.Equal(after, before) {
			t.Errorf("the state was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
		fetch(t, p.outputs(t)["url"].(string), "text/html")
	})
	step("an update is a workflow that says what it is", func(t *testing.T) {
		readableWorkflow(t, p,
			"another message | here")
	})
	step("destroy removes all", func(t *testing.T) {
		url := p.outputs(t)["url"].(string)
		p.update(t, "destroy").expect(t, map[string]int{"delete": 9})
		gone(t, url)
		if left := p.exported(t).Resources; len(left) != 0 {
			t.Errorf("there are still %d resources", len(left))
		}
	})
	step("what has ended is kept as history", func(t *testing.T) {
		if said := p.must(t, "stack", "history", "--json"); strings.Count(said, `"succeeded"`) < 7 {
			t.Errorf("the history is %s", said)
		}
	})
}

// fetch gets a page that must answer, of a content type.
func fetch(t *testing.T, url, contentType string) string {
	t.Helper()
	res, err := http.Get(url) //nolint:gosec // the stack's own output
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	page, err := io.ReadAll(res.Body)
	must(t, err)
	if found := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK ||
		!strings.HasPrefix(found, contentType) {
		t.Errorf("%s answers %s with %s", url, res.Status, found)
	}
	return string(page)
}

// gone makes sure that a page does not answer any more.
func gone(t *testing.T, url string) {
	t.Helper()
	res, err := http.Get(url) //nolint:gosec // the stack's own output
	must(t, err)
	must(t, res.Body.Close())
	if res.StatusCode == http.StatusOK {
		t.Errorf("%s still answers", url)
	}
}
