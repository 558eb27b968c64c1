package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/urfave/cli/v2"
)

// helpColumns is the width of help texts, helpLeft the width of the column of names.
const helpColumns, helpLeft = 80, 26

// helpPage is one page of help.
type helpPage struct{ strings.Builder }

// printHelp writes the help of an application or of a command. It replaces the templates of the parser.
func printHelp(w io.Writer, _ string, data any) {
	var page helpPage
	switch about := data.(type) {
	case *cli.App:
		page.head(about.Name, about.Usage)
		page.section("USAGE", "  "+about.Name+" COMMAND [ARGUMENTS] [FLAGS]\n")
		page.commands(about.Commands)
		page.section("FLAGS", "")
		page.entry("-v, --version", "print the version")
		page.entry("-h, --help", "show this help; deployctl COMMAND --help shows a command's")
		page.WriteString(console.ExitCodesHelp)
	case *cli.Command:
		page.command(about)
	}
	_, _ = io.WriteString(w, page.String())
}

func (p *helpPage) command(c *cli.Command) {
	name := c.HelpName
	p.head(name, c.Usage)
	p.usage(c)
	if c.Description != "" {
		p.section("DESCRIPTION", "")
		p.paragraphs(c.Description)
	}
	if c.UsageText != "" {
		p.section("EXAMPLES", "  "+strings.ReplaceAll(c.UsageText, "\n", "\n  ")+"\n")
	}
	p.commands(c.Subcommands)
	p.flags(c.Flags)
}

func (p *helpPage) head(name, usage string) {
	p.WriteString(fold(name+" - "+usage, helpColumns, "  ") + "\n")
}

func (p *helpPage) section(title, text string) { p.WriteString("\n" + title + ":\n" + text) }

// usage writes the command's usage line.
func (p *helpPage) usage(c *cli.Command) {
	line := "  " + c.HelpName
	visible := slices.ContainsFunc(c.Subcommands, func(c *cli.Command) bool { return !c.Hidden })
	if c.ArgsUsage != "" {
		line += " " + c.ArgsUsage
	}
	text := line + " [FLAGS]\n"
	if visible {
		text += "  " + c.HelpName + " COMMAND [ARGUMENTS] [FLAGS]\n"
	}
	p.section("USAGE", text)
}

// paragraphs writes a description. Lines that are too long are wrapped with the indentation of their beginning.
func (p *helpPage) paragraphs(text string) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		body := strings.TrimLeft(line, " ")
		indent := strings.Repeat(" ", 2+len(line)-len(body))
		p.WriteString(strings.TrimRight(indent+fold(body, helpColumns, indent), " ") + "\n")
	}
}

func (p *helpPage) commands(list []*cli.Command) {
	list = slices.DeleteFunc(slices.Clone(list), func(c *cli.Command) bool { return c.Hidden || c.Name == "help" })
	if len(list) == 0 {
		return
	}
	p.section("COMMANDS", "")
	for _, c := range list {
		p.entry(strings.Join(c.Names(), ", "), c.Usage)
	}
}

// flags writes the flags of a command; flags of settings are only listed by name.
func (p *helpPage) flags(list []cli.Flag) {
	p.section("FLAGS", "")
	var settings []string
	for _, f := range list {
		doc, ok := f.(cli.DocGenerationFlag)
		if visible, can := f.(cli.VisibleFlag); !ok || can && !visible.IsVisible() ||
			slices.Contains(f.Names(), "help") {
			continue
		}
		if category, can := f.(cli.CategorizableFlag); can && category.GetCategory() != "" {
			settings = append(settings, "--"+f.Names()[0])
			continue
		}
		p.entry(flagText(f, doc))
	}
	p.entry("-h, --help", "show this help")
	if len(settings) > 0 {
		p.section("SETTINGS", "  "+fold(strings.Join(settings, ", ")+" (deployctl settings --help describes them)",
			helpColumns-2, "  ")+"\n")
	}
}

// flagText returns a flag's names with the placeholder of its value, and its usage.
func flagText(f cli.Flag, doc cli.DocGenerationFlag) (name, usage string) {
	short, long := "", ""
	for _, n := range f.Names() {
		if len(n) == 1 {
			short = "-" + n + ", "
		} else if long == "" {
			long = "--" + n
		}
	}
	usage = doc.GetUsage()
	if doc.TakesValue() {
		value := "VALUE"
		if before, quoted, found := strings.Cut(usage, "`"); found {
			var after string
			value, after, _ = strings.Cut(quoted, "`")
			usage = before + value + after
		} else if _, number := f.(*cli.IntFlag); number {
			value = "N"
		}
		long += " " + value
		if text := strings.Trim(doc.GetDefaultText(), `"`); text != "" && text != "0" && text != "false" {
			usage += " (default: " + text + ")"
		}
	}
	return short + long, usage
}

// entry writes a name and its description in two columns.
func (p *helpPage) entry(name, usage string) {
	lines := strings.Split(fold(usage, helpColumns-helpLeft-2, ""), "\n")
	if display.Widest(name) > helpLeft-2 {
		p.WriteString("  " + name + "\n")
	} else {
		fmt.Fprintf(p, "  %-*s%s\n", helpLeft, name, lines[0])
		lines = lines[1:]
	}
	for _, line := range lines {
		fmt.Fprintf(p, "  %-*s%s\n", helpLeft, "", line)
	}
}

// fold wraps a text at spaces to a width; all lines but the first are indented.
func fold(text string, columns int, indent string) string {
	screen := &display.Screen{Size: func() (int, int) { return columns - len(indent) + 1, 0 }}
	return strings.ReplaceAll(display.Fold(text, screen), "\n", "\n"+indent)
}
