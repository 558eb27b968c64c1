package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// leftToSoak finds the tests that begin by leaving themselves to `make soak`.
	leftToSoak = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\tsoaktest\.Only\(t\)`)
	// italic finds the tests that a page names, and the mark of those in italics.
	italic = regexp.MustCompile("(\\*?)`(Test[A-Z]\\w*)`")
)

// TestAPageHasInItalicsWhatSoakPlaysAlone holds that a reader is told at which level each test that a page names is
// played.
func TestAPageHasInItalicsWhatSoakPlaysAlone(t *testing.T) {
	soaked := testsLike(t, leftToSoak)
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range italic.FindAllStringSubmatch(string(text), -1) {
			switch alone := slices.Contains(soaked, m[2]); {
			case alone && m[1] == "":
				t.Errorf("%s: %s is played by make soak alone, and must be in italics", page, m[2])
			case !alone && m[1] != "":
				t.Errorf("%s: %s is played by make test, and must not be in italics", page, m[2])
			}
		}
		if strings.Contains(string(text), "*`Test") && !strings.Contains(string(text), "*italics*") {
			t.Errorf("%s does not say what italics mean", page)
		}
	}
	if len(soaked) == 0 {
		t.Error("no test is left to make soak")
	}
}

// TestWhatIsLeftToSoakIsPlayedThere holds that each package with tests that are left to `make soak` is played by a part
// of it, with all of its tests.
func TestWhatIsLeftToSoakIsPlayedThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var played []string
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		if strings.Contains(line, "-args -full") && !strings.Contains(line, "-run ") {
			played = append(played, strings.Fields(line)...)
		}
	}
	for pkg := range testsByPackageLike(t, regexp.MustCompile(`soaktest\.(Only|ButFor|Full)`)) {
		if !slices.Contains(played, "./"+pkg) {
			t.Errorf("no part of make soak plays ./%s with -args -full", pkg)
		}
	}
}

// testsLike returns the names of all tests that a pattern finds.
func testsLike(t *testing.T, pattern *regexp.Regexp) (names []string) {
	t.Helper()
	for _, in := range testsByPackageLike(t, pattern) {
		names = append(names, in...)
	}
	return names
}
