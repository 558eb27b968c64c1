package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// securitySection returns the text below a heading of docs/security.md.
func securitySection(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	return section(t, string(text), heading)
}

// namedIn returns the words in backquotes of a table's first columns.
func namedIn(text string, columns int) map[string]bool {
	named := map[string]bool{}
	for _, row := range tableRows(text)[1:] {
		for _, word := range quotedWords(strings.Join(row[:columns], " ")) {
			named[word] = true
		}
	}
	return named
}

// TestTheTableOfPayloadsHasEachKind compares the table with the names of workflows, updates, signals, queries and
// activities: whoever adds one says when its payloads count.
func TestTheTableOfPayloadsHasEachKind(t *testing.T) {
	kinds := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(root, "deployments", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	sealed := regexp.MustCompile(`^(Workflow|Update|Signal|Query|Activity)[A-Z]`)
	note := func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if !sealed.MatchString(name.Name) || i >= len(spec.Values) {
				continue
			}
			if value, ok := spec.Values[i].(*ast.BasicLit); ok && value.Kind == token.STRING {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				kinds[text] = true
			}
		}
		return true
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, note)
	}
	compare(t, "kind of payload", kinds, namedIn(securitySection(t, "When a sealed payload counts"), 1))
}

// TestATypeOfAWorkflowsPayloadsIsOfOneKind reads what is said of each kind of payload of package deployments, as
// "In → Out": a payload is read as the type that was sealed, so no two kinds of a workflow may have one in common,
// and no activity one that is both its input and its result. Starts of Update and Lease say themselves which they are
// of.
func TestATypeOfAWorkflowsPayloadsIsOfOneKind(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "deployments", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var (
		said  = regexp.MustCompile(`(?m)^\t(Workflow|Update|Signal|Query|Activity)[A-Z]\w* += "([\w-]+)" +// (.*)$`)
		named = regexp.MustCompile(`^(?:([\w.\[\]]+)[ ,]*)?(?:[\w ]*→ ([\w.\[\]]+))?`)
		words = map[string]bool{"nothing": true, "int": true, "bool": true} // which nothing takes
		takes = map[string]string{}                                         // by type: the kind that does
		seen  = 0
	)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range said.FindAllStringSubmatch(string(text), -1) {
			types := named.FindStringSubmatch(kind[3])
			in, out := types[1], types[2]
			seen++
			if in == out && !words[in] {
				t.Errorf("%s takes and gives %s", kind[2], in)
			}
			if kind[1] == "Activity" { // whose payloads open for it alone
				continue
			}
			for _, typ := range []string{in, out} {
				if typ == "" || words[typ] || typ == "UpdateInput" || typ == "UpdateInfo" { // an end, whoever says it
					continue
				}
				if by := takes[typ]; by != "" && by != kind[2] {
					t.Errorf("%s is of %s and of %s", typ, by, kind[2])
				}
				takes[typ] = kind[2]
			}
		}
	}
	if seen < 40 || takes["Messages"] != "messages" || takes["Accepted"] != "submit" {
		t.Errorf("of %d kinds the types are read: %v", seen, takes)
	}
}

// TestTheTableOfObjectsHasEachFolder compares the table with the segments of keys in statestore and its packages:
// whoever writes another kind of object says what authenticates it.
func TestTheTableOfObjectsHasEachFolder(t *testing.T) {
	var (
		made   = regexp.MustCompile(`\b(?:bucket\.Key|stackobjects\.(?:Update)?Key|BlobKey)\((.*)`)
		folder = regexp.MustCompile(`(?m)^(?:const )?\s*[\w, ]*(?:Folder|Object)\b[\w, ]*=(.*)$`)
		word   = regexp.MustCompile(`"([a-z][a-z.-]+)/?"`)
		owned  = regexp.MustCompile(`kind: +"([a-z]+)"`)
	)
	folders := map[string]bool{}
	var files []string
	for _, at := range []string{"*.go", "*/*.go"} {
		found, err := filepath.Glob(filepath.Join(root, "statestore", at))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, places := range append(made.FindAllSubmatch(text, -1), folder.FindAllSubmatch(text, -1)...) {
			for _, found := range word.FindAllSubmatch(places[1], -1) {
				folders[string(found[1])] = true
			}
		}
		for _, kind := range owned.FindAllSubmatch(text, -1) {
			folders[string(kind[1])+"s"] = true
		}
	}
	delete(folders, "ring.json") // in keys
	compare(t, "folder", folders, namedIn(securitySection(t, "What makes an object of the bucket count"), 1))
}
