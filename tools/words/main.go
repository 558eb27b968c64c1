// Command words rejects retired words: those that docs/vocabulary.md replaces by a term of the field. Names are the
// identifiers that Go files declare; texts are string literals outside tests, and Markdown files.
//
// retired.txt lists them, one in a line: "name: WORD → REPLACEMENT" for a word of an identifier in camel case, or
// "text: PHRASE → REPLACEMENT" for words of a text.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

//go:embed retired.txt
var retired string

// rule is a retired word and the term that replaces it.
type rule struct {
	pattern     *regexp.Regexp
	word, terms string
}

func main() {
	names, texts, err := parse(retired)
	if err != nil {
		fatal(err)
	}
	found, err := check(names, texts)
	if err != nil {
		fatal(err)
	}
	for _, line := range found {
		fmt.Println(line)
	}
	if len(found) > 0 {
		fatal(fmt.Errorf("%d retired words; see docs/vocabulary.md", len(found)))
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "words:", err)
	os.Exit(1)
}

// parse reads the list of retired words.
func parse(list string) (names map[string]string, texts []rule, err error) {
	names = map[string]string{}
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, rest, _ := strings.Cut(line, ": ")
		word, terms, ok := strings.Cut(rest, " → ")
		switch {
		case ok && kind == "name":
			names[strings.ToLower(word)] = terms
		case ok && kind == "text":
			spaced := strings.ReplaceAll(regexp.QuoteMeta(word), " ", `\s+`)
			texts = append(texts, rule{regexp.MustCompile(`(?i)\b` + spaced + `\b`), word, terms})
		default:
			return nil, nil, fmt.Errorf("retired.txt: %q is neither `name: WORD → TERM` nor `text: PHRASE → TERM`",
				line)
		}
	}
	return names, texts, nil
}

// check returns a line for each retired word in the files that git knows.
func check(names map[string]string, texts []rule) (found []string, err error) {
	files, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go", "*.md").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	for file := range strings.Lines(string(files)) {
		file = strings.TrimSpace(file)
		var more []string
		switch {
		case strings.HasSuffix(file, ".pb.go"):
		case filepath.Ext(file) == ".go":
			more, err = checkGo(file, names, texts)
		case file != "docs/vocabulary.md":
			more, err = checkMarkdown(file, texts)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // removed, and not staged yet
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func checkGo(file string, names map[string]string, texts []rule) (found []string, err error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	test := strings.HasSuffix(file, "_test.go")
	report := func(at token.Pos, word, terms string) {
		found = append(found, fmt.Sprintf("%s: %q is retired: use %s", set.Position(at), word, terms))
	}
	declared := func(ids ...*ast.Ident) {
		for _, id := range ids {
			for _, part := range words(id.Name) {
				if terms, ok := names[strings.ToLower(part)]; ok {
					report(id.Pos(), part, terms)
				}
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.FuncDecl:
			declared(n.Name)
		case *ast.TypeSpec:
			declared(n.Name)
		case *ast.ValueSpec:
			declared(n.Names...)
		case *ast.Field:
			declared(n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					declared(id)
				}
			}
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil || test {
				return true
			}
			for _, r := range texts {
				if r.pattern.MatchString(text) {
					report(n.Pos(), r.word, r.terms)
				}
			}
		}
		return true
	})
	return found, nil
}

func checkMarkdown(file string, texts []rule) (found []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for _, r := range texts {
		for _, at := range r.pattern.FindAllIndex(text, -1) {
			line := 1 + bytes.Count(text[:at[0]], []byte("\n"))
			found = append(found, fmt.Sprintf("%s:%d: %q is retired: use %s", file, line, r.word, r.terms))
		}
	}
	return found, nil
}

// boundary stands before a capital that begins a word: after a small letter or digit, or before a small letter.
var boundary = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// words returns the words of an identifier in camel case.
func words(name string) []string {
	return strings.FieldsFunc(boundary.ReplaceAllString(name, "${1}${3}_${2}${4}"),
		func(r rune) bool { return r == '_' })
}
