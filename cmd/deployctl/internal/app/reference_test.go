package app

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/commands.md and docs/settings.md")

// docColumns is the width of a line in docs.
const docColumns = 130

// TestTheReferenceIsWhatHelpSays compares the generated part of docs/commands.md with the tree of commands.
func TestTheReferenceIsWhatHelpSays(t *testing.T) {
	app := command.NewApp(&console.Env{More: commands(nil)})
	before := generated(t, "../../../../docs/commands.md", "## Every command and its flags\n", reference(app))
	for _, c := range app.Commands {
		if !c.Hidden && !strings.Contains(before, "`"+c.Name) {
			t.Errorf("the table of commands lacks %s", c.Name)
		}
	}
	for path, c := range commandsBelow(app.Name, app.Commands) {
		if c.UsageText == "" {
			t.Errorf("%s has no example", path)
		}
	}
}

// TestThePageOfSettingsHasEverySetting compares the generated part of docs/settings.md with the table of settings.
func TestThePageOfSettingsHasEverySetting(t *testing.T) {
	generated(t, "../../../../docs/settings.md", "## Every setting\n", settingsReference())
}

// generated compares the part of a document after a heading with its expected text, or with -update writes it. It
// returns the part before the heading.
func generated(t *testing.T, document, heading, want string) string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, found, ok := strings.Cut(string(text), heading)
	switch {
	case !ok:
		t.Fatalf("%s has no %q", document, heading)
	case *update:
		if err := os.WriteFile(document, []byte(before+heading+want), 0o644); err != nil {
			t.Fatal(err)
		}
	case found != want:
		t.Errorf("%s is out of date: rewrite it with go test ./cmd/deployctl/... -run 'Reference|PageOfSettings' -update",
			document)
	}
	return before
}

// commandsBelow iterates over every command that is not hidden, with its path.
func commandsBelow(path string, commands []*cli.Command) func(yield func(string, *cli.Command) bool) {
	return func(yield func(string, *cli.Command) bool) {
		for _, c := range commands {
			if c.Hidden {
				continue
			}
			if !yield(path+" "+c.Name, c) {
				return
			}
			for below, c := range commandsBelow(path+" "+c.Name, c.Subcommands) {
				if !yield(below, c) {
					return
				}
			}
		}
	}
}

// reference describes every command that is not hidden.
func reference(app *cli.App) string {
	var b strings.Builder
	b.WriteString("\nEvery command that calls a service has these flags, `--stack` only if it is about one stack:\n\n")
	shared := map[string]bool{}
	for _, f := range app.Command("up").Flags {
		if everywhere(f) {
			shared[flagItem(f)] = true
			b.WriteString(flagItem(f))
		}
	}
	for path, c := range commandsBelow(app.Name, app.Commands) {
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", strings.TrimSpace(path+" "+c.ArgsUsage), folded(sentences(c), ""))
		fmt.Fprintf(&b, "\n```sh\n%s\n```\n", c.UsageText)
		if items := flagItems(c, shared); items != "" {
			b.WriteString("\n" + items)
		}
	}
	return b.String()
}

// everywhere reports whether a flag is common to the commands that call a service.
func everywhere(f cli.Flag) bool {
	switch name := f.Names()[0]; name {
	case "cwd", "settings", "stack", "non-interactive":
		return true
	default:
		return isSetting(f)
	}
}

// flagItems lists the flags of a command except the common ones. Flags of settings are listed in docs/settings.md.
func flagItems(c *cli.Command, shared map[string]bool) string {
	var b strings.Builder
	calls := slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == "non-interactive" })
	set := false
	for _, f := range c.Flags {
		switch item := flagItem(f); {
		case calls && shared[item]:
		case isSetting(f):
			set = true
		default:
			b.WriteString(item)
		}
	}
	if set {
		b.WriteString("- the flags of its [settings](settings.md#every-setting)\n")
	}
	return b.String()
}

// isSetting reports whether a flag sets a setting, and is listed with the settings.
func isSetting(f cli.Flag) bool {
	category, ok := f.(cli.CategorizableFlag)
	return ok && category.GetCategory() != ""
}

// sentences returns the sentences that describe a command, without the list of settings after the first paragraph of
// its description.
func sentences(c *cli.Command) string {
	text := strings.ToUpper(c.Usage[:1]) + c.Usage[1:] + "."
	if len(c.Aliases) > 0 {
		text += " Also `" + strings.Join(c.Aliases, "`, `") + "`."
	}
	if c.Description != "" {
		paragraph, _, _ := strings.Cut(c.Description, "\n\n")
		text += " " + strings.ReplaceAll(paragraph, "\n", " ")
	}
	return text
}

// folded wraps a text to the width of docs; all lines but the first are indented.
func folded(text, indent string) string {
	screen := &display.Screen{Size: func() (int, int) { return docColumns - len(indent) + 1, 0 }}
	return strings.ReplaceAll(display.Fold(text, screen), "\n", "\n"+indent)
}

// flagItem describes a flag as an item of a list.
func flagItem(f cli.Flag) string {
	names, usage, value := []string{}, "", ""
	for _, name := range f.Names() {
		names = append(names, "-"+strings.Repeat("-", min(1, len(name)-1))+name)
	}
	doc, ok := f.(cli.DocGenerationFlag)
	if ok {
		usage = doc.GetUsage()
		if doc.TakesValue() {
			value = "VALUE"
			if _, after, found := strings.Cut(usage, "`"); found {
				value, _, _ = strings.Cut(after, "`")
			}
		}
	}
	item := "- `" + strings.TrimSpace(strings.Join(names, ", ")+" "+value) + "`: " + strings.ReplaceAll(usage, "`", "")
	if text := doc.GetDefaultText(); ok && value != "" && text != "" && text != "0" {
		item += " (default: " + strings.Trim(text, `"`) + ")"
	}
	return folded(item, "  ") + "\n"
}

// settingsReference describes every setting, in a table for each group.
func settingsReference() string {
	var b strings.Builder
	for _, group := range []struct {
		of    settings.Group
		title string
	}{
		{settings.ForClient, "Commands that call a service"},
		{settings.ForServe, "`serve`"},
		{settings.ForService, "`serve` and `worker`"},
		{settings.ForEach, "Every command"},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n| setting | environment variable | default | meaning |\n|---|---|---|---|\n",
			group.title)
		for _, d := range settings.Table {
			if d.Group != group.of {
				continue
			}
			name, meaning := "`"+string(d.Key)+"`", strings.ReplaceAll(d.Usage, "`", "")
			if d.Secret {
				meaning += " (no flag)"
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, d.Key.Variable(), d.Default, meaning)
		}
	}
	return b.String()
}
