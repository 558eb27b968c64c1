package docs

import (
	"go/parser"
	"go/token"
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

// rooms are the directories whose directories are rooms, besides the top.
var rooms = []string{"internal", "cmd/deployctl/internal"}

// room returns the room that a file belongs to, as a path in the repository.
func room(file string) string {
	for _, above := range rooms {
		if below, ok := strings.CutPrefix(file, above+"/"); ok {
			name, _, _ := strings.Cut(below, "/")
			return above + "/" + name
		}
	}
	name, _, _ := strings.Cut(file, "/")
	return name
}

func TestTheArchitectureNamesEachRoom(t *testing.T) {
	named, tree := map[string]bool{}, map[string]bool{}
	for _, row := range tableRows(section(t, architecture(t), "The rooms"))[1:] {
		for _, name := range quotedWords(row[0]) {
			named[name] = true
		}
	}
	for _, file := range goFiles(t) {
		tree[room(file)] = true
	}
	compare(t, "room", tree, named)
}

var listed = regexp.MustCompile(`(?m)^//   - ([a-z0-9/-]+): `)

// withPackages are the rooms whose doc comments list the packages below them.
func withPackages(room string) bool {
	return strings.HasPrefix(room, "internal/") || room == "cmd/deployctl/internal/command" || room == "statestore"
}

func TestEachRoomListsItsPackages(t *testing.T) {
	packages, named := map[string]bool{}, map[string]bool{}
	for _, file := range goFiles(t) {
		at := room(file)
		if !withPackages(at) {
			continue
		}
		if dir := path.Dir(file); dir != at {
			packages[dir] = true
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		doc, _, _ := strings.Cut(string(text), "\npackage ")
		for _, m := range listed.FindAllStringSubmatch(doc, -1) {
			named[at+"/"+m[1]] = true
		}
	}
	compare(t, "package", packages, named)
}

func TestTheRoomsOfInternalImportWhatTheArchitectureSays(t *testing.T) {
	written, found := map[string]bool{}, map[string]bool{}
	for _, row := range tableRows(section(t, architecture(t), "Who may import whom")) {
		from := quotedWords(row[0])
		if len(from) != 1 {
			continue // of the other table
		}
		for _, to := range quotedWords(row[1]) {
			written[from[0]+" -> "+to] = true
		}
	}
	for _, file := range goFiles(t) {
		from, ok := strings.CutPrefix(room(file), "internal/")
		if !ok {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			to, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"internal/")
			if to, _, _ = strings.Cut(to, "/"); ok && to != from {
				found[from+" -> "+to] = true
			}
		}
	}
	compare(t, "import", found, written)
}

func TestTheArchitectureNamesEachFileOfTheCore(t *testing.T) {
	for heading, dir := range map[string]string{"The core": "engine", "The snapshot": "engine/snapshot"} {
		named, files := map[string]bool{}, map[string]bool{}
		for _, row := range tableRows(section(t, architecture(t), heading)) {
			for _, name := range quotedWords(row[0]) {
				named[name] = true
			}
		}
		for _, file := range goFiles(t) {
			if path.Dir(file) == dir {
				files[path.Base(file)] = true
			}
		}
		compare(t, "file of "+dir, files, named)
	}
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
