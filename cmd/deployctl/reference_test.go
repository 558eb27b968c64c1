package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	"github.com/deployctl/deployctl/internal/settings"
	"github.com/urfave/cli/v2"
)

var update = flag.Bool("update", false, "rewrite the reference in docs/commands.md")

const (
	document  = "../../docs/commands.md"
	beginning = "## Every command and its flags\n"
)

// TestTheReferenceIsWhatHelpSays compares the last part of docs/commands.md with the tree of commands.
func TestTheReferenceIsWhatHelpSays(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, found, ok := strings.Cut(string(text), beginning)
	if !ok {
		t.Fatalf("%s has no %q", document, beginning)
	}
	app := command.NewApp(&command.Surroundings{More: serviceCommands})
	want := reference(app)
	if *update {
		if err := os.WriteFile(document, []byte(before+beginning+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if found != want {
		t.Errorf("%s is not what the commands are: rewrite it with go test ./cmd/deployctl -run Reference -update", document)
	}
	for _, c := range app.Commands {
		if !c.Hidden && !strings.Contains(before, "`"+c.Name) {
			t.Errorf("the table of commands lacks %s", c.Name)
		}
	}
}

// reference describes every command that is not hidden.
func reference(app *cli.App) string {
	var b strings.Builder
	b.WriteString("\nCommands that speak to a service also have these:\n\n")
	var shared []string
	for _, f := range app.Command("up").Flags {
		if everywhere(f) {
			shared = append(shared, f.Names()[0])
			describe(&b, f)
		}
	}
	var walk func(path string, commands []*cli.Command)
	walk = func(path string, commands []*cli.Command) {
		for _, c := range commands {
			if c.Hidden {
				continue
			}
			name := path + " " + c.Name
			fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", strings.TrimSpace(name+" "+c.ArgsUsage), sentence(c))
			first := "\n"
			for _, f := range c.Flags {
				if !slices.Contains(shared, f.Names()[0]) || c.Name == "dev" && path == "deployctl" {
					b.WriteString(first)
					first = ""
					describe(&b, f)
				}
			}
			walk(name, c.Subcommands)
		}
	}
	walk("deployctl", app.Commands)
	return b.String()
}

// everywhere says whether a flag is common to the commands that speak to a service.
func everywhere(f cli.Flag) bool {
	name := f.Names()[0]
	for _, d := range settings.Table {
		if d.Key.Flag() == name {
			return d.Group == settings.ForClient
		}
	}
	return slices.Contains([]string{"cwd", "settings", "stack", "non-interactive"}, name)
}

func sentence(c *cli.Command) string {
	text := strings.ToUpper(c.Usage[:1]) + c.Usage[1:] + "."
	if len(c.Aliases) > 0 {
		text += " Also `" + strings.Join(c.Aliases, "`, `") + "`."
	}
	if c.Description != "" {
		text += " " + c.Description
	}
	return text
}

// describe writes a flag as an item of a list.
func describe(b *strings.Builder, f cli.Flag) {
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
		item += " (" + strings.Trim(text, `"`) + ")"
	}
	b.WriteString(item + "\n")
}
