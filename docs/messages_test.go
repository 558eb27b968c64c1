package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	messageRow  = regexp.MustCompile("(?m)^\\| (`.*?) \\| ") // of a table whose first column is a message
	message     = regexp.MustCompile("`([^`]+)`")
	placeholder = regexp.MustCompile(`\S*[A-Z]{2,}\S*|\b[NMVX]\b|\bvX\b|…|\b\d+\b`) // stands for what differs
	concatenate = regexp.MustCompile(`"\s*\+\s*"`)
	verb        = regexp.MustCompile(`%(?:\[\d+\])?[-+.\d]*[a-zA-Z]`)
)

// TestEveryMessageInTheDocsIsInTheCode compares the fixed parts of the messages, on the pages that explain some, with
// the literals of the code.
func TestEveryMessageInTheDocsIsInTheCode(t *testing.T) {
	code, checked := literals(t), 0
	sections := map[string]string{"troubleshooting.md": "## A command", "production.md": "## When a part does not answer"}
	for page, section := range sections {
		for _, m := range messages(t, page, section) {
			for _, part := range placeholder.Split(m, -1) {
				part = strings.Trim(part, " .,;:()")
				if len(part) < 8 {
					continue
				}
				checked++
				if !strings.Contains(code, part) {
					t.Errorf("%s: no message of the code has %q, of the message %q", page, part, m)
				}
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d parts of messages were found", checked)
	}
}

// messages returns what stands in the first columns of a page's tables, from a section on until one begins that has no
// messages.
func messages(t *testing.T, page, section string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), section)
	if !ok {
		t.Fatalf("%s has no %q", page, section)
	}
	after, _, _ = strings.Cut(after, "## Where to look")
	after, _, _ = strings.Cut(after, "## Monitoring")
	for _, row := range messageRow.FindAllStringSubmatch(after, -1) {
		for _, m := range message.FindAllStringSubmatch(row[1], -1) {
			found = append(found, m[1])
		}
	}
	return found
}

// literals is the text of all packages, with literals that are added to each other as one, and a NUL for each verb.
func literals(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || name == "node_modules" || name == "bin"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text := concatenate.ReplaceAllString(code.String(), "")
	text = strings.NewReplacer(`\"`, `"`, "`", "").Replace(text)
	return verb.ReplaceAllString(text, "\x00")
}
