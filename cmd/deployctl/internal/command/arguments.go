package command

import (
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// given is a flag as it stands on the command line: its own word, and its value's if that is a word of its own.
type given struct {
	name  string
	words []string
}

// arrange puts a command line in the order that the parser wants: commands, flags, arguments. The parser takes a flag
// after an argument as an argument, which would store a secret in plain text. Flags that the command does not have,
// unknown commands and a wrong number of arguments are errors.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) < 2 || args[len(args)-1] == "--generate-bash-completion" {
		return args, nil
	}
	flags, words, err := split(args[1:], valued(app.Commands))
	if err != nil {
		return nil, err
	}
	path, command := []string{args[0]}, (*cli.Command)(nil)
	for commands := app.Commands; len(words) > 0; commands = command.Subcommands {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(words[0]) })
		if i < 0 {
			break
		}
		command = commands[i]
		path, words = append(path, words[0]), words[1:]
	}
	if err := check(path, command, flags, words); err != nil {
		return nil, err
	}
	for _, f := range flags {
		path = append(path, f.words...)
	}
	if command == nil || len(words) == 0 {
		return append(path, words...), nil
	}
	return append(append(path, "--"), words...), nil
}

// valued lists the flags, of any command, that have a value. A name means the same on every command.
func valued(commands []*cli.Command) map[string]bool {
	names := map[string]bool{}
	for _, c := range commands {
		for _, f := range c.Flags {
			doc, ok := f.(cli.DocGenerationFlag)
			for _, name := range f.Names() {
				names[name] = ok && doc.TakesValue()
			}
		}
		for name, takes := range valued(c.Subcommands) {
			names[name] = takes
		}
	}
	return names
}

// split tells flags from other words.
func split(args []string, valued map[string]bool) (flags []given, words []string, err error) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			return flags, append(words, args[i+1:]...), nil
		}
		if len(word) < 2 || word[0] != '-' {
			words = append(words, word)
			continue
		}
		name, _, attached := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"), "=")
		f := given{name, []string{word}}
		if valued[name] && !attached {
			if i++; i == len(args) {
				return nil, nil, deployments.Errorf(deployments.CodeInvalid, "%s needs a value", word)
			}
			f.words = []string{word + "=" + args[i]}
		}
		flags = append(flags, f)
	}
	return flags, words, nil
}

// check reports what the command cannot take.
func check(path []string, command *cli.Command, flags []given, words []string) error {
	line := strings.Join(path, " ")
	line = line[strings.LastIndexByte(path[0], '/')+1:]
	var known []cli.Flag
	if command != nil {
		known = command.Flags
	}
	help := false
	for _, f := range flags {
		if f.name == "help" || f.name == "h" {
			help = true
			continue
		}
		if !slices.ContainsFunc(known, func(k cli.Flag) bool { return slices.Contains(k.Names(), f.name) }) {
			return deployments.Errorf(deployments.CodeInvalid,
				"%s has no flag %s; see %s --help. If it is a value, write -- before it", line, f.words[0], line)
		}
	}
	switch {
	case help || command == nil && (len(words) == 0 || words[0] == "help" || words[0] == "h"):
		return nil
	case command == nil || len(command.Subcommands) > 0 && len(words) > 0:
		return deployments.Errorf(deployments.CodeInvalid, "%s has no command %q; see %s --help", line, words[0], line)
	}
	least, most := arity(command.ArgsUsage)
	if len(words) < least || most >= 0 && len(words) > most {
		return deployments.Errorf(deployments.CodeInvalid, "%s takes %s, not %d arguments; see %s --help",
			line, orNone(command.ArgsUsage), len(words), line)
	}
	return nil
}

func orNone(usage string) string {
	if usage == "" {
		return "no argument"
	}
	return usage
}

// arity reads how many arguments "KEY [VALUE]" stands for; most is -1 after "...".
func arity(usage string) (least, most int) {
	for _, word := range strings.Fields(usage) {
		if strings.HasSuffix(word, "...") || strings.HasSuffix(word, "...]") {
			return least, -1
		}
		if word[0] != '[' {
			least++
		}
		most++
	}
	return least, most
}
