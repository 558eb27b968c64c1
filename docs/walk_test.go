package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A reader of core-walk.md opens the files of a walk one after another, so there must not be many.
func TestAWalkPassesFewFiles(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "core-walk.md"))
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile(`\]\(\.\./([\w/]+\.go)\)`)
	for walk, most := range map[string]int{"One registration": 40, "One lease": 30, "One refresh": 20} {
		passed := map[string]bool{}
		for _, row := range tableRows(section(t, string(page), walk)) {
			for _, link := range file.FindAllStringSubmatch(strings.Join(row, " "), -1) {
				passed[link[1]] = true
			}
		}
		if len(passed) < 10 || len(passed) > most {
			t.Errorf("%s passes %d files, and may pass %d", walk, len(passed), most)
		}
		t.Logf("%s: %d files", walk, len(passed))
	}
}
