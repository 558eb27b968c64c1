package command

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/access"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/templates"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/urfave/cli/v2"
)

const (
	// completionFlag ends a command line whose last word is to be completed.
	completionFlag = "--generate-bash-completion"
	// filesWanted tells the shell to complete the name of a file.
	filesWanted = "<files>"
	// completionTime bounds the calls to the service, because the user waits for the completion.
	completionTime = 2 * time.Second
	// completedVersions is how many of the latest updates are listed.
	completedVersions = 50
)

// choices are the values of the flags that accept only a few.
var choices = map[string][]string{
	"on-busy": {"queue", "fail", "supersede"}, "on-unknown": {"wait", "fail"}, "kind": {"up", "refresh", "destroy"},
	"format": access.AuditFormats, "role": {"viewer", "deployer", "admin"},
	"secrets-provider": {"default", deployments.SecretsPassphrase, "awskms://", "azurekeyvault://", "gcpkms://",
		"hashivault://"},
}

// source lists the possible values of a flag or argument.
type source func(context.Context, *console.Session) []string

// flagSources are the sources of the values of flags.
var flagSources = map[string]source{
	"stack": stackNames, "dest": stackNames, "source": stackNames, "target": urns, "replace": urns, "exclude": urns,
	"update": versions,
}

// fileFlags take the name of a file or a directory.
var fileFlags = []string{"file", "out", "import-file", "plan", "save-plan", "cwd", "settings", "home",
	"token-file", "ca-cert", "tls-cert", "tls-key", "key-file", "policy-pack", "policy-pack-config", "dir", "config-file"}

// argumentSources are the sources of arguments, by command and name of the argument, or by its name alone.
var argumentSources = map[string]source{
	"STACK": stackNames, "UPDATE": versions, "VERSION": versions, "URN": urns, "RESOURCE": resourceNames,
	"KEY":           configKeys,
	"schedule NAME": scheduleNames, "stack output NAME": outputNames, "stack tag KEY": tagNames,
	"token rm NAME": tokenNames, "member rm NAME": memberNames, "MEMBER": memberNames, "TEAM": teamNames,
	"trust rm NAME": trustNames, "profile show NAME": profileNames, "profile set NAME": profileNames,
	"profile unset NAME": profileNames, "profile rm NAME": profileNames, "profile unset KEY": variableNames,
	"PROVIDER": func(context.Context, *console.Session) []string { return choices["secrets-provider"] },
	"TEMPLATE": func(context.Context, *console.Session) []string {
		return slices.Concat(templates.Names, []string{filesWanted})
	},
	"SHELL": func(context.Context, *console.Session) []string { return console.Sorted(completions) },
	"schedule new KIND": func(context.Context, *console.Session) []string {
		return []string{"drift", "update",
			"destroy"}
	},
}

// complete prints the completions of the last word of a command line. It ignores errors: what it cannot find out is
// left out.
func complete(ctx context.Context, s *console.Env, app *cli.App, words []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	current := words[len(words)-1]
	for _, found := range candidates(ctx, s, app, words[:len(words)-1], current) {
		value, about, described := strings.Cut(found, "\t")
		if !strings.HasPrefix(value, current) && value != filesWanted {
			continue
		}
		text := safetext.Line(value)
		if described {
			text += "\t" + safetext.Line(about)
		}
		_, _ = fmt.Fprintln(s.Out, text)
	}
}

func candidates(ctx context.Context, s *console.Env, app *cli.App, before []string, current string) []string {
	takes := valued(app.Commands)
	l := line{path: []string{app.Name}, below: app.Commands}
	pending := "" // a flag that waits for its value
	for i, word := range before {
		name, _, attached := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case pending != "":
			l.flags, pending = append(l.flags, given{name: pending, words: []string{word}}), ""
		case len(word) > 1 && word[0] == '-':
			if takes[name] && !attached {
				pending = name
			} else if _, value, _ := strings.Cut(word, "="); attached {
				l.flags = append(l.flags, given{name: name, words: []string{value}})
			}
		case len(l.words) == 0 && slices.ContainsFunc(l.below, func(c *cli.Command) bool { return c.HasName(word) }):
			l.command = l.below[slices.IndexFunc(l.below, func(c *cli.Command) bool { return c.HasName(word) })]
			l.path, l.below = append(l.path, l.command.Name), l.command.Subcommands
			addValued(takes, l.command)
		default:
			l.words = append(l.words, before[i])
		}
	}
	if name, _, attached := strings.Cut(current, "="); attached && strings.HasPrefix(name, "-") {
		var out []string
		for _, value := range flagValues(ctx, s, app, l, strings.TrimLeft(name, "-")) {
			out = append(out, name+"="+value)
		}
		return out
	}
	switch {
	case pending != "":
		return flagValues(ctx, s, app, l, pending)
	case strings.HasPrefix(current, "-"):
		return l.flagCandidates()
	case len(l.below) > 0 && len(l.words) == 0:
		return commandCandidates(l.below)
	}
	return argumentValues(ctx, s, app, l)
}

func commandCandidates(commands []*cli.Command) []string {
	var out []string
	for _, c := range commands {
		if !c.Hidden && c.Name != "help" {
			out = append(out, c.Name+"\t"+c.Usage)
		}
	}
	return out
}

func (l line) flagCandidates() []string {
	if l.command == nil {
		return []string{"--help\tshow help", "--version\tprint the version"}
	}
	out := []string{"--help\tshow help"}
	for _, f := range l.command.Flags {
		if doc, ok := f.(cli.DocGenerationFlag); ok {
			out = append(out, "--"+f.Names()[0]+"\t"+strings.ReplaceAll(doc.GetUsage(), "`", ""))
		}
	}
	slices.Sort(out)
	return out
}

// flagValues lists the values of a flag.
func flagValues(ctx context.Context, s *console.Env, app *cli.App, l line, name string) []string {
	if l.command == nil { // the flag precedes its command: take any command that has it
		l.command = withFlag(app.Commands, name)
	}
	if l.command != nil {
		for _, f := range l.command.Flags {
			if slices.Contains(f.Names(), name) {
				name = f.Names()[0]
			}
		}
	}
	if slices.Contains(fileFlags, name) {
		return []string{filesWanted}
	}
	if list, ok := choices[name]; ok {
		return list
	}
	return listOf(ctx, s, app, l, flagSources[name])
}

// withFlag returns a command that has a flag; nil if there is none.
func withFlag(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) {
			return c
		}
		if found := withFlag(c.Subcommands, name); found != nil {
			return found
		}
	}
	return nil
}

// argumentValues lists the values of the argument at the cursor.
func argumentValues(ctx context.Context, s *console.Env, app *cli.App, l line) []string {
	if l.command == nil {
		return nil
	}
	kind := argumentAt(l.command, len(l.words))
	if kind == "" {
		return nil
	}
	for i := 1; i <= len(l.path); i++ {
		outer := strings.Join(append(slices.Clone(l.path[1:len(l.path)-i+1]), kind), " ")
		if from, ok := argumentSources[outer]; ok {
			return listOf(ctx, s, app, l, from)
		}
	}
	if s.Offers == nil {
		return nil
	}
	place := strings.Join(append(slices.Clone(l.path[1:]), kind), " ")
	return listOf(ctx, s, app, l, func(ctx context.Context, quiet *console.Session) []string {
		return s.Offers(ctx, s, place, quiet.Flags)
	})
}

// argumentAt returns the name of the i-th argument of a command; "" if it takes fewer.
func argumentAt(c *cli.Command, i int) string {
	kinds := strings.Fields(c.ArgsUsage)
	if last := len(kinds) - 1; last >= 0 && i > last && strings.Contains(kinds[last], "...") {
		i = last
	}
	if i >= len(kinds) {
		return ""
	}
	return strings.Trim(kinds[i], "[].")
}

// listOf returns the values of a source, for the flags that the command line has so far. It never starts the embedded
// service, and prints nothing.
func listOf(ctx context.Context, s *console.Env, app *cli.App, l line, list source) []string {
	if list == nil || l.command == nil {
		return nil
	}
	set := l.flagSet()
	if set == nil {
		return nil
	}
	quiet, err := console.NewSession(s, cli.NewContext(app, set, nil))
	if err != nil {
		return nil
	}
	quiet.Completing = true
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	defer quiet.Close()
	return list(ctx, quiet)
}

// flagSet returns the flags of the command with the values that they have in the line; nil if they cannot be defined.
func (l line) flagSet() *flag.FlagSet {
	set := flag.NewFlagSet(l.command.Name, flag.ContinueOnError)
	for _, f := range l.command.Flags {
		if f.Apply(set) != nil {
			return nil
		}
	}
	for _, f := range l.flags {
		for _, known := range l.command.Flags {
			if !slices.Contains(known.Names(), f.name) {
				continue
			}
			for _, name := range known.Names() {
				_ = set.Set(name, f.words[0]) // an invalid value is reported when the command runs
			}
		}
	}
	return set
}
