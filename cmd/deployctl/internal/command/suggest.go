package command

import (
	"slices"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/urfave/cli/v2"
)

// synonyms are words of other tools for commands, which are not similar to theirs.
var synonyms = map[string]string{"delete": "rm", "remove": "rm", "create": "init", "list": "ls"}

// foreign are words of other tools for commands (Terraform, Kubernetes, CDK, SST, Serverless), by what says the same
// here.
var foreign = map[string]string{
	"apply": "use `deployctl up`", "run": "use `deployctl up`",
	"diff": "use `deployctl preview`", "validate": "use `deployctl preview`",
	"synth": "use `deployctl preview`", "remove": "use `deployctl destroy`",
	"delete": "use `deployctl destroy`", "teardown": "use `deployctl destroy`",
	"output": "use `deployctl stack output`", "outputs": "use `deployctl stack output`",
	"history": "use `deployctl stack history`", "show": "use `deployctl stack` or `deployctl state show`",
	"ls": "use `deployctl stack ls`", "list": "use `deployctl stack ls`",
	"workspace": "use `deployctl stack`", "select": "use `deployctl stack select`",
	"taint": "use `deployctl state taint`", "untaint": "use `deployctl state untaint`",
	"unlock": "use `deployctl cancel`", "force-unlock": "use `deployctl cancel`",
	"init":   "use `deployctl new` for a project, `deployctl stack init` for a stack",
	"secret": "use `deployctl config set --secret`", "secrets": "use `deployctl config set --secret`",
	"export": "use `deployctl stack export`", "restore": "use `deployctl stack restore`, which changes the state alone",
	"rollback": "check out the earlier program and run `deployctl up`",
	"undo":     "check out the earlier program and run `deployctl up`",
}

// meantCommand is DidYouMean for a command, which may be called differently elsewhere; top says that they are those of
// deployctl itself.
func meantCommand(word string, commands []*cli.Command, top bool) string {
	names := commandNames(commands)
	if advice := foreign[word]; top && advice != "" {
		return "; " + advice
	}
	if own := synonyms[word]; slices.Contains(names, own) {
		return "; did you mean " + own + "?"
	}
	return console.DidYouMean(word, names)
}

// commandNames returns the names and aliases of commands that are not hidden.
func commandNames(commands []*cli.Command) []string {
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	return names
}

// flagNames returns the long flags, with their dashes.
func flagNames(flags []cli.Flag) []string {
	var names []string
	for _, f := range flags {
		for _, name := range f.Names() {
			if len(name) > 1 {
				names = append(names, "--"+name)
			}
		}
	}
	return names
}
