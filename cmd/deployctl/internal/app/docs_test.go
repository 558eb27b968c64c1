package app

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

var shellBlock = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")

// TestEveryCommandLineInTheDocsIsOne parses the shell scripts in the docs and checks each command line of deployctl in
// them: its commands, its flags, and how many arguments it has.
func TestEveryCommandLineInTheDocsIsOne(t *testing.T) {
	app := command.NewApp(&console.Env{More: commands(nil)})
	pages := []string{"../../../../README.md"}
	for _, pattern := range []string{"../../../../docs/*.md", "../../../../docs/runbooks/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	checked := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			for _, line := range commandLines(t, page, block[1]) {
				checked++
				if _, err := command.Parse(app, line); err != nil {
					t.Errorf("%s: %s: %v", page, strings.Join(line, " "), err)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d command lines were found", checked)
	}
}

// commandLines returns the words of each call of deployctl in a script.
func commandLines(t *testing.T, page, script string) (lines [][]string) {
	t.Helper()
	parsed, err := syntax.NewParser().Parse(strings.NewReader(script), page)
	if err != nil {
		t.Errorf("%s: %v in\n%s", page, err, script)
		return nil
	}
	// Substitutions have no output here, and variables no value.
	config := &expand.Config{CmdSubst: func(_ io.Writer, _ *syntax.CmdSubst) error { return nil }}
	syntax.Walk(parsed, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 || call.Args[0].Lit() != "deployctl" {
			return true
		}
		line, err := expand.Fields(config, call.Args...)
		if err != nil {
			t.Errorf("%s: %v in\n%s", page, err, script)
		}
		lines = append(lines, line)
		return true
	})
	return lines
}
