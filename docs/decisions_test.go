package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// status is the line below the title of a decision record. What amends or supersedes it is another record.
var status = regexp.MustCompile(
	`\A# (\d+)\. .+\n\nStatus: (accepted|superseded by)(, amended by)?( ?\[(\d{4})\]\(\d{4}-[a-z0-9-]+\.md\)( and\n)?)*\.\n`)

func TestEachDecisionHasAStatusAndStandsInTheListOnce(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(root, "docs/adr/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob(filepath.Join(root, "docs/adr/0*.md"))
	if err != nil || len(records) == 0 {
		t.Fatalf("%d records are found: %v", len(records), err)
	}
	for _, record := range records {
		name := filepath.Base(record)
		text, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		title := status.FindStringSubmatch(string(text))
		if title == nil || title[1] != strings.TrimLeft(name[:4], "0") {
			t.Errorf("%s does not begin with its number, its title and a status as docs/adr/README.md describes it", name)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		_, subject, _ := strings.Cut(first, ". ")
		if n := strings.Count(string(list), "]("+name+"): "+subject+"\n"); n != 1 {
			t.Errorf("docs/adr/README.md has %s, by its title, %d times", name, n)
		}
	}
}
