package configuration

import (
	"context"
	"os"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/urfave/cli/v2"
)

// configManyCommands are those that change several values at once: all of them, or none.
func configManyCommands(s *console.Env) []*cli.Command {
	return []*cli.Command{
		{
			Name: "set-all", Usage: "set several values",
			Flags: console.OnStack(console.ConfigFileFlag, console.PathFlag,
				&cli.StringSliceFlag{Name: "plaintext", Usage: "set `KEY=VALUE`; may be repeated"},
				&cli.StringSliceFlag{Name: "secret", Usage: "encrypt VALUE, and set `KEY=VALUE`; may be repeated"}),
			Action: console.Action(s, runSetAll),
		},
		{Name: "rm-all", Usage: "remove several values", ArgsUsage: "KEY...",
			Flags:  console.OnStack(console.ConfigFileFlag, console.PathFlag),
			Action: console.Action(s, runRm)},
		{
			Name: "cp", Usage: "copy a value, or all of them, to another stack of the project", ArgsUsage: "[KEY]",
			Description: "Secrets are encrypted for the other stack. Values that it has under the same keys are replaced.",
			Flags: console.OnStack(console.ConfigFileFlag, console.PathFlag, &cli.StringFlag{Name: "dest", Usage: "copy to this `STACK`",
				Required: true}),
			Action: console.Action(s, runCp),
		},
	}
}

func runSetAll(ctx context.Context, s *console.Session) error {
	secrets, err := Configured(ctx, s)
	if err != nil {
		return err
	}
	values := 0
	for _, flag := range []string{"plaintext", "secret"} {
		for _, pair := range s.Flags.StringSlice(flag) {
			key, value, found := cutPair(pair, s.Flags.Bool("path"))
			if !found {
				return deployments.Errorf(deployments.CodeInvalid, "--%s takes KEY=VALUE, not %q", flag, key)
			}
			set := SetValue{Key: key, Value: value, Secret: flag == "secret"}
			if err := Set(ctx, secrets, set, s.Flags.Bool("path")); err != nil {
				return err
			}
			warnUnread(s, secrets.Stack, key, s.Flags.Bool("path"))
			values++
		}
	}
	if values == 0 {
		return deployments.Errorf(deployments.CodeInvalid, "no value was given; pass --plaintext KEY=VALUE or --secret "+
			"KEY=VALUE")
	}
	return secrets.Stack.Save()
}

// cutPair divides KEY=VALUE. A path may have quoted parts, with a "=" of their own: names["a=b"]=VALUE.
func cutPair(pair string, path bool) (key, value string, found bool) {
	quoted := false
	for i, r := range pair {
		switch {
		case r == '"' && path:
			quoted = !quoted
		case r == '=' && !quoted:
			return pair[:i], pair[i+1:], true
		}
	}
	return pair, "", false
}

// runRm removes the values of its arguments: of one, or of several.
func runRm(ctx context.Context, s *console.Session) error {
	secrets, err := Configured(ctx, s)
	if err != nil {
		return err
	}
	path := s.Flags.Bool("path")
	for _, text := range s.Flags.Args().Slice() {
		key, err := secrets.Stack.Key(text, path)
		if err != nil {
			return err
		}
		if _, ok, err := secrets.Stack.Get(key, path); err == nil && !ok {
			return unknownKey(secrets, key)
		}
		if err := secrets.Stack.Remove(key, path); err != nil {
			return err
		}
	}
	return secrets.Stack.Save()
}

func runCp(ctx context.Context, s *console.Session) error {
	from, err := Configured(ctx, s)
	if err != nil {
		return err
	}
	there, err := s.ParseStack(s.Flags.String("dest"))
	if err != nil {
		return err
	}
	if s.Project == nil || there == from.Name {
		return deployments.Errorf(deployments.CodeInvalid, "--dest names %s: name another stack of this project", there)
	}
	to, err := s.SecretsIn(there, "")
	if err != nil {
		return err
	}
	if err := mustExist(ctx, s, to); err != nil {
		return err
	}
	all, err := copied(s, from)
	if err != nil {
		return err
	}
	for _, what := range all {
		if err := copyConfig(ctx, from, to, what); err != nil {
			return err
		}
	}
	return to.Stack.Save()
}

// mustExist refuses a stack that neither has a configuration file nor is known to the service: its name is mistyped.
func mustExist(ctx context.Context, s *console.Session, to *project.Secrets) error {
	if _, err := os.Stat(to.Stack.Path); err == nil {
		return nil
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	_, err := s.Service.Stack(ctx, to.Name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return s.UnknownStack(ctx, to.Name)
	}
	return err
}

// place is where a value is: at a key, or at a path.
type place struct {
	key  config.Key
	path bool
}

// copied returns what is copied: the argument, or all keys if there is none.
func copied(s *console.Session, from *project.Secrets) (all []place, err error) {
	if text := s.Flags.Args().First(); text != "" {
		path := s.Flags.Bool("path")
		key, err := from.Stack.Key(text, path)
		return []place{{key, path}}, err
	}
	for _, key := range from.Stack.Keys() {
		all = append(all, place{key, false})
	}
	return all, nil
}

// copyConfig copies a value; the secrets in it are decrypted, and encrypted for the other stack.
func copyConfig(ctx context.Context, from, to *project.Secrets, what place) error {
	v, ok, err := from.Stack.Get(what.key, what.path)
	if err != nil {
		return err
	}
	if !ok {
		return unknownKey(from, what.key)
	}
	if v.Secure() {
		before, err := from.Crypter(ctx)
		if err != nil {
			return err
		}
		after, err := to.Crypter(ctx)
		if err != nil {
			return err
		}
		if v, err = v.Copy(before, after); err != nil {
			if whole, ok := strings.CutPrefix(err.Error(), ": "); ok { // the path to the value in it: it is all of it
				err = deployments.Errorf(deployments.CodeOf(err), "%s", whole)
			}
			return deployments.Errorf(deployments.CodeInvalid, "cannot copy %s: %w", what.key, err)
		}
	}
	return to.Stack.Set(what.key, v, what.path)
}
