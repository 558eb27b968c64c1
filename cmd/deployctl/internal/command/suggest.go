package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/urfave/cli/v2"
)

// nearest returns the candidate that is most similar to a mistyped word; "" if none is similar enough.
func nearest(word string, candidates []string) string {
	letters := strings.ToLower(strings.TrimLeft(word, "-"))
	best, least := "", min(len([]rune(letters))/3+2, len([]rune(letters))/2+1)
	for _, candidate := range candidates {
		distance := levenshtein.Distance(letters, strings.ToLower(strings.TrimLeft(candidate, "-")), nil)
		if swapped(word, candidate) {
			distance = 1
		}
		if distance < least && distance < len([]rune(candidate)) {
			best, least = candidate, distance
		}
	}
	return best
}

// swapped reports whether two words differ only by two adjacent characters that are swapped.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i+1 < len(a); i++ {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// didYouMean returns the part of a message that suggests a candidate; "" if none is similar to the word.
func didYouMean(word string, candidates []string) string {
	if found := nearest(word, candidates); found != "" {
		return "; did you mean " + found + "?"
	}
	return ""
}

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

// meantCommand is didYouMean for a command, which may be called differently elsewhere; top says that they are those of
// deployctl itself.
func meantCommand(word string, commands []*cli.Command, top bool) string {
	names := commandNames(commands)
	if advice := foreign[word]; top && advice != "" {
		return "; " + advice
	}
	if own := synonyms[word]; slices.Contains(names, own) {
		return "; did you mean " + own + "?"
	}
	return didYouMean(word, names)
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

// unknownStack returns the error that a stack does not exist. It suggests a similar stack or, if there is none, how to
// create it.
func (s *session) unknownStack(ctx context.Context, name deployments.StackName) error {
	if meant := s.meantStack(ctx, name); meant != "" {
		return deployments.Errorf(deployments.CodeNotFound, "there is no stack %s; did you mean %s?", name, meant)
	}
	if s.strange(ctx, name) {
		return deployments.Errorf(deployments.CodeNotFound, "there is no stack %s, nor any other in the "+
			"organization %s; for a stack of a project %s write %s, or create it with deployctl stack init %s", name,
			name.Organization, name.Organization, s.asProject(name), name)
	}
	short := name.Stack
	if parsed, err := s.parseStack(short); err != nil || parsed != name {
		short = name.String() // of another organization or project than the command's
	}
	return deployments.Errorf(deployments.CodeNotFound, "there is no stack %s; see deployctl stack ls, or create it "+
		"with deployctl stack init %s", name, short)
}

// meantStack returns the name of the project's stack that is most similar to one that does not exist.
func (s *session) meantStack(ctx context.Context, name deployments.StackName) string {
	list, err := s.service.ListStacks(ctx, name.Organization, name.Project)
	if err != nil {
		return "" // the message then has no suggestion
	}
	var names []string
	for _, info := range list {
		names = append(names, info.Stack.Stack)
	}
	return nearest(name.Stack, names)
}

// unknownKey returns the error that a key has no value in a stack's configuration. It suggests a similar key.
func unknownKey(secrets *project.Secrets, key config.Key) error {
	var names []string
	for _, other := range secrets.Stack.Keys() {
		names = append(names, other.String())
	}
	hint := didYouMean(key.String(), names)
	if declared, err := secrets.Stack.Declared(); err == nil {
		if _, ok := declared[key.String()]; ok {
			hint = "; it is declared in the project's Pulumi.yaml"
		}
	}
	if hint == "" {
		hint = fmt.Sprintf("; set it with deployctl config set %s VALUE", key)
	}
	return deployments.Errorf(deployments.CodeNotFound, "%s is not set in %s%s", key, secrets.Stack.Path, hint)
}
