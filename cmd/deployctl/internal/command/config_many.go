package command

import (
	"context"
	"os"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/urfave/cli/v2"
)

// configManyCommands are those that change several values at once: all of them, or none.
func configManyCommands(s *Env) []*cli.Command {
	return []*cli.Command{
		{
			Name: "set-all", Usage: "set several values",
			Flags: onStack(configFileFlag, pathFlag,
				&cli.StringSliceFlag{Name: "plaintext", Usage: "set `KEY=VALUE`; may be repeated"},
				&cli.StringSliceFlag{Name: "secret", Usage: "encrypt VALUE, and set `KEY=VALUE`; may be repeated"}),
			Action: action(s, runConfigSetAll),
		},
		{Name: "rm-all", Usage: "remove several values", ArgsUsage: "KEY...", Flags: onStack(configFileFlag, pathFlag),
			Action: action(s, runConfigRm)},
		{
			Name: "cp", Usage: "copy a value, or all of them, to another stack of the project", ArgsUsage: "[KEY]",
			Description: "Secrets are encrypted for the other stack. Values that it has under the same keys are replaced.",
			Flags: onStack(configFileFlag, pathFlag, &cli.StringFlag{Name: "dest", Usage: "copy to this `STACK`",
				Required: true}),
			Action: action(s, runConfigCp),
		},
	}
}

func runConfigSetAll(ctx context.Context, s *session) error {
	secrets, err := s.configured(ctx)
	if err != nil {
		return err
	}
	values := 0
	for _, flag := range []string{"plaintext", "secret"} {
		for _, pair := range s.flags.StringSlice(flag) {
			key, value, found := cutPair(pair, s.flags.Bool("path"))
			if !found {
				return deployments.Errorf(deployments.CodeInvalid, "--%s takes KEY=VALUE, not %q", flag, key)
			}
			set := setValue{key: key, value: value, secret: flag == "secret"}
			if err := setConfig(ctx, secrets, set, s.flags.Bool("path")); err != nil {
				return err
			}
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

// runConfigRm removes the values of its arguments: of one, or of several.
func runConfigRm(ctx context.Context, s *session) error {
	secrets, err := s.configured(ctx)
	if err != nil {
		return err
	}
	path := s.flags.Bool("path")
	for _, text := range s.flags.Args().Slice() {
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

func runConfigCp(ctx context.Context, s *session) error {
	from, err := s.configured(ctx)
	if err != nil {
		return err
	}
	there, err := s.parseStack(s.flags.String("dest"))
	if err != nil {
		return err
	}
	if s.project == nil || there == from.Name {
		return deployments.Errorf(deployments.CodeInvalid, "--dest names %s: name another stack of this project", there)
	}
	to, err := s.secretsIn(there, "")
	if err != nil {
		return err
	}
	if err := s.mustExist(ctx, to); err != nil {
		return err
	}
	all, err := s.copied(from)
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
func (s *session) mustExist(ctx context.Context, to *project.Secrets) error {
	if _, err := os.Stat(to.Stack.Path); err == nil {
		return nil
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	_, err := s.service.Stack(ctx, to.Name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return s.unknownStack(ctx, to.Name)
	}
	return err
}

// place is where a value is: at a key, or at a path.
type place struct {
	key  config.Key
	path bool
}

// copied returns what is copied: the argument, or all keys if there is none.
func (s *session) copied(from *project.Secrets) (all []place, err error) {
	if text := s.flags.Args().First(); text != "" {
		path := s.flags.Bool("path")
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
