package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// root is the directory of the repository, start the page from which a reader finds all others.
const root, start = "..", "README.md"

// page is a page of documentation.
type page struct {
	text    string          // without blocks of code
	anchors map[string]bool // of its headings
	links   []string
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// pages reads every page of the repository, by its path from the root.
func pages(t *testing.T) map[string]page {
	t.Helper()
	found := map[string]page{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "docs/runbooks/*.md", "examples/*/*.md"} {
		paths, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Fatal(err)
			}
			found[path] = parse(string(text))
		}
	}
	return found
}

func parse(text string) page {
	p := page{text: fence.ReplaceAllString(text, ""), anchors: map[string]bool{}}
	for _, h := range heading.FindAllStringSubmatch(p.text, -1) {
		p.anchors[anchor(h[1])] = true
	}
	for _, l := range link.FindAllStringSubmatch(code.ReplaceAllString(p.text, ""), -1) {
		p.links = append(p.links, l[1])
	}
	return p
}

// anchor is the name that a heading gets on the web: lower case, hyphens for spaces, and no punctuation.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, link.ReplaceAllString(heading, "]"))
}

// target is what a link leads to: a path from the root, and an anchor, which may be empty. It is false for an address
// on the web.
func target(from, to string) (path, anchor string, ok bool) {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return "", "", false
	}
	path, anchor, _ = strings.Cut(to, "#")
	if path == "" {
		return from, anchor, true
	}
	return filepath.ToSlash(filepath.Join(filepath.Dir(from), path)), anchor, true
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	all := pages(t)
	for from, p := range all {
		for _, to := range p.links {
			path, anchor, ok := target(from, to)
			if !ok {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s links to %s, which does not exist", from, to)
			} else if anchor != "" && !all[path].anchors[anchor] {
				t.Errorf("%s links to %s, but no heading of %s has this anchor", from, to, path)
			}
		}
	}
}

// TestEveryPageIsFoundFromTheReadme follows links. A link to a directory leads to all its pages.
func TestEveryPageIsFoundFromTheReadme(t *testing.T) {
	all, reached := pages(t), map[string]bool{}
	var visit func(string)
	visit = func(path string) {
		if reached[path] {
			return
		}
		reached[path] = true
		for _, to := range all[path].links {
			if next, _, ok := target(path, to); ok {
				visit(next)
			}
		}
		for other := range all {
			if filepath.ToSlash(filepath.Dir(other)) == path {
				visit(other)
			}
		}
	}
	visit(start)
	for path := range all {
		if !reached[path] && !strings.HasPrefix(path, "examples/") {
			t.Errorf("no link leads from %s to %s", start, path)
		}
	}
}

// TestLinesOfPagesAreNotTooLong is about the pages for users. Rows of tables may be longer.
func TestLinesOfPagesAreNotTooLong(t *testing.T) {
	const columns = 130
	for path, p := range pages(t) {
		if path != start && filepath.Dir(path) != "docs" && filepath.Dir(path) != "docs/runbooks" {
			continue
		}
		for line := range strings.Lines(p.text) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > columns && !strings.HasPrefix(line, "|") {
				t.Errorf("%s has a line of %d columns; %d are allowed:\n%s", path, n, columns, line)
			}
		}
	}
}
