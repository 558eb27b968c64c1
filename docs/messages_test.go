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

// TestEveryMessageOnThePageOnTroubleshootingIsInTheCode compares the fixed parts of the messages with the literals of
// the code.
func TestEveryMessageOnThePageOnTroubleshootingIsInTheCode(t *testing.T) {
	page, err := os.ReadFile("troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	messages, _, _ := strings.Cut(string(page), "## Where to look")
	code, checked := literals(t), 0
	for _, row := range messageRow.FindAllStringSubmatch(messages, -1) {
		for _, m := range message.FindAllStringSubmatch(row[1], -1) {
			for _, part := range placeholder.Split(m[1], -1) {
				part = strings.Trim(part, " .,;:()")
				if len(part) < 8 {
					continue
				}
				checked++
				if !strings.Contains(code, part) {
					t.Errorf("no message of the code has %q, of the message %q", part, m[1])
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d parts of messages were found", checked)
	}
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
