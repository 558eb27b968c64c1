package docs

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

const module = "github.com/deployctl/deployctl/"

// architecture returns ARCHITECTURE.md.
func architecture(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the text below a heading of the second level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("the page has no section %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// goFiles returns the Go files that git knows, without tests.
func goFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(file string) bool {
		_, err := os.Stat(filepath.Join(root, file))
		return err != nil || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/")
	})
}

func TestTheArchitectureNamesEachPackage(t *testing.T) {
	named := map[string]bool{"engine": true, "engine/modeltest": true}
	for _, row := range tableRows(section(t, architecture(t), "The other packages")) {
		for _, name := range quotedWords(row[0]) {
			named[name] = true
		}
	}
	packages := map[string]bool{}
	for _, file := range goFiles(t) {
		top, _, _ := strings.Cut(file, "/")
		if slices.Contains([]string{"api", "bench", "chaos", "e2e", "docs", "tools", "examples"}, top) {
			packages[top] = true // described as a whole
		} else {
			packages[path.Dir(file)] = true
		}
	}
	compare(t, "package", packages, named)
}

func TestTheArchitectureNamesEachFileOfTheCore(t *testing.T) {
	named, files := map[string]bool{}, map[string]bool{}
	for _, row := range tableRows(section(t, architecture(t), "The core")) {
		for _, name := range quotedWords(row[0]) {
			named[name] = true
		}
	}
	for _, file := range goFiles(t) {
		if path.Dir(file) == "engine" {
			files[path.Base(file)] = true
		}
	}
	compare(t, "file of engine", files, named)
}

// compare reports what the tree has and ARCHITECTURE.md does not name, and the reverse.
func compare(t *testing.T, what string, tree, named map[string]bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if !named[name] {
			t.Errorf("the page does not name the %s %s", what, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if !tree[name] {
			t.Errorf("the page names the %s %s, which does not exist", what, name)
		}
	}
}

// depguard is the part of .golangci.yml that restricts imports.
type depguard struct {
	Linters struct {
		Settings struct {
			Depguard struct {
				Rules map[string]importRule
			}
		}
	}
}

type importRule struct {
	Mode  string `yaml:"list-mode"`
	Allow []string
	Deny  []struct{ Pkg string }
}

// allows reports whether a rule lets a package be imported, with all below it.
func (r importRule) allows(pkg string) bool {
	within := func(prefix string) bool { return strings.HasPrefix(pkg+"/", prefix+"/") }
	for _, d := range r.Deny {
		if within(d.Pkg) {
			return false
		}
	}
	return r.Mode != "strict" || slices.ContainsFunc(r.Allow, within)
}

// imported are the packages that a column of the import table stands for.
var imported = map[string]string{
	"engine": module + "engine", "deployments": module + "deployments", "statestore": module + "statestore",
	"activities": module + "activities", "Temporal SDK": "go.temporal.io/sdk",
	"S3": "github.com/aws/aws-sdk-go-v2", "gRPC": "google.golang.org/grpc",
}

func TestTheImportTableIsThatOfTheLinter(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config depguard
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	rows := tableRows(section(t, architecture(t), "Who may import whom"))
	head := rows[0]
	for _, row := range rows[1:] {
		for _, name := range strings.Split(row[0], ", ") {
			rule, ok := config.Linters.Settings.Depguard.Rules[name]
			for i, cell := range row[1:] {
				pkg, known := imported[head[i+1]]
				if !known {
					t.Fatalf("the import table has the unknown column %q", head[i+1])
				}
				switch allowed := !ok || rule.allows(pkg); {
				case cell == "no" && allowed:
					t.Errorf("ARCHITECTURE.md forbids %s to import %s, .golangci.yml does not", name, pkg)
				case cell == "yes" && !allowed:
					t.Errorf("ARCHITECTURE.md lets %s import %s, .golangci.yml does not", name, pkg)
				}
			}
		}
	}
}

// tableRows returns the cells of the tables in a Markdown text, with their headings.
func tableRows(text string) (rows [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

var inBackquotes = regexp.MustCompile("`([^`]+)`")

// quotedWords returns the words of a text that stand in backquotes.
func quotedWords(text string) (words []string) {
	for _, m := range inBackquotes.FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}
