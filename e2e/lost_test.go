package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// TestWhoLostEverythingManagesTheWebsiteAgain deletes the service's bucket while it is stopped. The program, the
// website's own bucket, the service's key and the workflows that Temporal has of the lost bucket are what is left.
func TestWhoLostEverythingManagesTheWebsiteAgain(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := newHome(t)
	p := h.in(filepath.Join(t.TempDir(), "website"))
	must(t, os.CopyFS(p.dir, os.DirFS(filepath.Join(root, "examples", "website"))))
	p.must(t, "stack", "init", "dev")
	p.update(t, "up").expect(t, map[string]int{"create": 10})
	url := p.outputs(t)["url"].(string)
	buckets := func() []string {
		found, err := filepath.Glob(filepath.Join(h.state(), "data", "s3", "site-*"))
		must(t, err)
		return found
	}
	before := buckets()
	p.must(t, "dev", "stop")
	must(t, os.RemoveAll(filepath.Join(h.state(), "data", "s3", "deployctl")))

	p.must(t, "stack", "init", "dev")
	var told surveyed
	must(t, json.Unmarshal([]byte(p.must(t, "stack", "rebuild", "--dry-run", "--json")), &told))
	if foreign := slices.ContainsFunc(told.Found, func(f found) bool { return f.Foreign }); len(told.Found) != 8 ||
		foreign || len(told.NotFound) != 0 || len(told.Orphans) != 0 {
		t.Errorf("it lists %+v", told)
	}
	if left := p.exported(t).Resources; len(left) != 0 {
		t.Errorf("the preview has stored %d resources", len(left))
	}
	got := p.update(t, "up", "--adopt")
	if ops := got.finished(); slices.ContainsFunc(ops, func(op string) bool {
		return strings.HasPrefix(op, "create www/") || strings.HasPrefix(op, "create site")
	}) {
		t.Errorf("it made %v", ops)
	}
	if after := buckets(); !slices.Equal(before, after) || len(after) != 1 {
		t.Errorf("the buckets were %v and are %v", before, after)
	}
	if page := fetch(t, url, "text/html"); !strings.Contains(page, "<h1>") {
		t.Errorf("the page is %q", page)
	}
	p.update(t, "up").expect(t, map[string]int{"same": 10})
	p.update(t, "destroy").expect(t, map[string]int{"delete": 10})
	if left := buckets(); len(left) != 0 {
		t.Errorf("there are still %v", left)
	}
}
