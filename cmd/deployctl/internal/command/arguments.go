package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// given is a flag of a command line: its name, its word with the value, and whether it lacks one.
type given struct {
	name  string
	words []string
	lacks bool
}

// Parse puts a command line into the order that the parser needs: commands, flags, arguments. The parser would take a
// flag after an argument as another argument: `config set KEY VALUE --secret` would store a secret in plain text.
// Unknown flags, unknown commands and a wrong number of arguments are errors. A line that asks for help becomes the
// command and --help alone: the parser would take an argument for a command below it, or at the root.
func Parse(app *cli.App, args []string) ([]string, error) {
	if len(args) == 2 && (args[1] == "--version" || args[1] == "-version" || args[1] == "-v") {
		return []string{args[0], "version"}, nil
	}
	if len(args) < 2 {
		return args, nil
	}
	if args[1] == "help" || args[1] == "h" {
		args = append(append(args[:1:1], args[2:]...), "--help")
	}
	takes := valued(app.Commands)
	addValued(takes, meant(app.Commands, args[1:], takes))
	flags, words := split(args[1:], takes)
	l := line{path: args[:1:1], below: app.Commands, flags: flags, words: words}
	for len(l.words) > 0 {
		i := slices.IndexFunc(l.below, func(c *cli.Command) bool { return c.HasName(l.words[0]) })
		if i < 0 {
			break
		}
		l.command = l.below[i]
		l.path, l.words, l.below = append(l.path, l.words[0]), l.words[1:], l.command.Subcommands
	}
	help, err := l.check()
	if err != nil {
		return nil, err
	}
	if help {
		return append(l.path, "--help"), nil
	}
	arranged := l.path
	for _, f := range flags {
		arranged = append(arranged, f.words...)
	}
	if len(l.words) == 0 {
		return arranged, nil
	}
	return append(append(arranged, "--"), l.words...), nil
}

// valued returns, for every flag of any command, whether it takes a value. A few names do on one command and not on
// another: they do not until the command is known, which decides (addValued).
func valued(commands []*cli.Command) map[string]bool {
	names := map[string]bool{}
	for _, c := range commands {
		own := valued(c.Subcommands)
		addValued(own, c)
		for name, takes := range own {
			before, known := names[name]
			names[name] = takes && (before || !known)
		}
	}
	return names
}

// addValued adds the flags of a command, which may be nil.
func addValued(names map[string]bool, c *cli.Command) {
	if c == nil {
		return
	}
	for _, f := range c.Flags {
		doc, ok := f.(cli.DocGenerationFlag)
		for _, name := range f.Names() {
			names[name] = ok && doc.TakesValue()
		}
	}
}

// meant returns the command that the words of a command line name; nil if they name none.
func meant(commands []*cli.Command, args []string, takes map[string]bool) (found *cli.Command) {
	for i := 0; i < len(args); i++ {
		if name, _, attached := strings.Cut(strings.TrimLeft(args[i], "-"), "="); strings.HasPrefix(args[i], "-") {
			if takes[name] && !attached {
				i++
			}
			continue
		}
		at := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(args[i]) })
		if at < 0 {
			return found
		}
		found, commands = commands[at], commands[at].Subcommands
	}
	return found
}

// split separates flags from other words.
func split(args []string, valued map[string]bool) (flags []given, words []string) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			return flags, append(words, args[i+1:]...)
		}
		if len(word) < 2 || word[0] != '-' {
			words = append(words, word)
			continue
		}
		name, _, attached := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"), "=")
		f := given{name: name, words: []string{word}}
		if valued[name] && !attached {
			if i++; i == len(args) {
				f.lacks = true
			} else {
				f.words = []string{word + "=" + args[i]}
			}
		}
		flags = append(flags, f)
	}
	return flags, words
}

// line is a command line, split into its parts.
type line struct {
	path    []string       // the program and the commands
	command *cli.Command   // the last of them; nil if there is none
	below   []*cli.Command // the commands that may follow
	flags   []given
	words   []string // all other words
}

func (l line) String() string {
	text := strings.Join(l.path, " ")
	return text[strings.LastIndexByte(l.path[0], '/')+1:]
}

// check returns an error if the command does not accept the line. help is true if the line asks for help.
func (l line) check() (help bool, err error) {
	help, err = l.checkFlags()
	if err != nil && !l.elsewhere() {
		return false, err
	}
	switch {
	case len(l.words) > 0 && (l.command == nil || len(l.command.Subcommands) > 0):
		hint := l.stock(l.words[0])
		if hint == "" {
			hint = meantCommand(l.words[0], l.below, l.command == nil)
		}
		if hint == "" {
			hint = fmt.Sprintf("; see %s --help", l)
		}
		return false, deployments.Errorf(deployments.CodeInvalid, "%s has no command %q%s", l, l.words[0], hint)
	case help || l.command == nil:
		return help, nil
	}
	least, most := arity(l.command.ArgsUsage)
	if len(l.words) < least || most >= 0 && len(l.words) > most {
		return false, deployments.Errorf(deployments.CodeInvalid, "%s takes %s, not %s; see %s --help",
			l, orNone(l.command.ArgsUsage), arguments(len(l.words)), l)
	}
	return false, l.checkEncoding()
}

// elsewhere reports whether the line is a command of another tool, whose flags are not ours, either.
func (l line) elsewhere() bool {
	return l.command == nil && len(l.words) > 0 && (foreign[l.words[0]] != "" || l.stock(l.words[0]) != "")
}

// checkFlags returns an error for a flag that the command does not have. help is true if the line asks for help.
func (l line) checkFlags() (help bool, err error) {
	var known []cli.Flag
	if l.command != nil {
		known = l.command.Flags
	}
	for _, f := range l.flags {
		if f.name == "help" || f.name == "h" {
			help = true
			continue
		}
		if l.command != nil && l.flag(f.name) != nil {
			if f.lacks {
				return help, deployments.Errorf(deployments.CodeInvalid, "%s needs a value", f.words[0])
			}
			continue
		}
		word, _, _ := strings.Cut(f.words[0], "=")
		hint := l.stock(word)
		if hint == "" {
			hint = console.DidYouMean(word, flagNames(known))
		}
		if hint == "" {
			hint = fmt.Sprintf("; see %s --help. If it is a value, write -- before it", l)
		}
		return help, deployments.Errorf(deployments.CodeInvalid, "%s has no flag %s%s", l, word, hint)
	}
	return help, nil
}

func orNone(usage string) string {
	if usage == "" {
		return "no argument"
	}
	return usage
}

// arguments is a number of arguments in words.
func arguments(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", n)
}

// arity returns how many arguments a usage such as "KEY [VALUE]" or "[KIND [NAME]]" allows; most is -1 if it ends in
// "...".
func arity(usage string) (least, most int) {
	open := 0 // brackets
	for _, word := range strings.Fields(usage) {
		open += strings.Count(word, "[")
		if strings.Contains(word, "...") {
			return least, -1
		}
		if open == 0 {
			least++
		}
		most++
		open -= strings.Count(word, "]")
	}
	return least, most
}
