package command

import (
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// checkEncoding refuses a flag or an argument that is not UTF-8, by its name: it would be stored as another text, or
// not be sent. Names of files may be in any encoding.
func (l line) checkEncoding() error {
	for _, given := range l.flags {
		_, value, _ := strings.Cut(given.words[0], "=")
		f := l.flag(given.name)
		if f == nil || namesFile(placeholder(f)) {
			continue
		}
		if err := deployments.CheckUTF8("the value of "+dashed(given.name), value); err != nil {
			return err
		}
	}
	names := strings.Fields(strings.NewReplacer("[", "", "]", "", "...", "").Replace(l.command.ArgsUsage))
	for i, word := range l.words {
		name := names[min(i, len(names)-1)]
		if namesFile(name) {
			continue
		}
		if err := deployments.CheckUTF8(name, word); err != nil {
			return err
		}
	}
	return nil
}

// flag returns the flag of a name that the command has; nil if it has none.
func (l line) flag(name string) cli.Flag {
	for _, f := range l.command.Flags {
		for _, of := range f.Names() {
			if of == name {
				return f
			}
		}
	}
	return nil
}

// namesFile reports whether the values that a word of a usage stands for are paths, or may be.
func namesFile(word string) bool { return word == "FILE" || word == "DIR" || word == "TEMPLATE" }

// placeholder returns the word for a flag's value in its usage.
func placeholder(f cli.Flag) string {
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	_, rest, _ := strings.Cut(doc.GetUsage(), "`")
	word, _, _ := strings.Cut(rest, "`")
	return word
}

// dashed is a flag as users write it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
