package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	// shown finds, in their order, the tests and the transcripts that a page names, and the package behind tests.
	shown = regexp.MustCompile("`(Test[A-Z]\\w*)`|\\(([a-z0-9]+(?:/[a-z0-9-]+)*)\\)|`(?:engine/testdata/)?([a-z_0-9]+\\.txt)`")
)

// TestTheTestsThatThePagesNameExist holds that a test stands in the package that a page names behind it, and a
// transcript among those of the core.
func TestTheTestsThatThePagesNameExist(t *testing.T) {
	in := testsByPackage(t)
	known := map[string]bool{}
	for _, names := range in {
		for _, name := range names {
			known[name] = true
		}
	}
	for _, name := range []string{"compatibility.md", "conformance.md", "convergence.md", "stock-cli.md", "upgrades.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var waiting []string // tests whose package has not been named yet
			for _, m := range shown.FindAllStringSubmatch(line, -1) {
				switch _, isPackage := in[m[2]]; {
				case m[3] != "":
					if _, err := os.Stat(filepath.Join(root, "engine", "testdata", m[3])); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				case m[1] != "" && !known[m[1]]:
					t.Errorf("%s: there is no %s", name, m[1])
				case m[1] != "":
					waiting = append(waiting, m[1])
				case isPackage:
					for _, test := range waiting {
						if !slices.Contains(in[m[2]], test) {
							t.Errorf("%s: %s is not in %s", name, test, m[2])
						}
					}
					waiting = nil
				}
			}
		}
	}
}

// TestEveryLineOfConformanceIsShownOrSaysWhyNot holds that no row of the page is without a test or a reason.
func TestEveryLineOfConformanceIsShownOrSaysWhyNot(t *testing.T) {
	text, err := os.ReadFile("conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	reason := regexp.MustCompile(`^(not |kept |refused )`)
	for line := range strings.Lines(string(text)) {
		what, by, isRow := strings.Cut(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if by = strings.TrimSpace(by); !isRow || by == "shown by" || strings.HasPrefix(what, "-") {
			continue
		}
		rows++
		if !shown.MatchString(by) && !strings.Contains(by, "both engines") && !reason.MatchString(by) {
			t.Errorf("nothing shows: %s", what)
		}
	}
	if rows < 50 {
		t.Errorf("only %d rows were found", rows)
	}
}

// statements is how many statements the reference of convergence.md has.
const statements = 41

// TestEveryStatementOfTheLifecycleIsShown holds that convergence.md goes through all statements of its reference,
// in their order, and that each is shown by a test.
func TestEveryStatementOfTheLifecycleIsShown(t *testing.T) {
	text, err := os.ReadFile("convergence.md")
	if err != nil {
		t.Fatal(err)
	}
	row, last := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| (.+) \|$`), 0
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		if last++; m[1] != strconv.Itoa(last) {
			t.Fatalf("statement %s stands in the place of %d", m[1], last)
		}
		if !shown.MatchString(m[3]) {
			t.Errorf("nothing shows statement %s: %s", m[1], m[2])
		}
	}
	if last != statements {
		t.Errorf("there are %d statements, not %d", last, statements)
	}
}

// testsByPackage returns the names of all tests, by the directory of their package.
func testsByPackage(t *testing.T) map[string][]string {
	t.Helper()
	return testsByPackageLike(t, testFunction)
}

// testsByPackageLike is testsByPackage for those tests that a pattern finds, whose first group is the name.
func testsByPackageLike(t *testing.T, pattern *regexp.Regexp) map[string][]string {
	t.Helper()
	in := map[string][]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && file != "."):
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
			in[path.Dir(file)] = append(in[path.Dir(file)], m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}
