package configuration

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/urfave/cli/v2"
)

// Command returns deployctl config.
func Command(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "show and change the stack's configuration",
		Flags:  console.OnStack(console.ConfigFileFlag, console.JSONFlag, console.ShowSecretsFlag),
		Action: console.Action(s, runLs),
		Subcommands: append([]*cli.Command{
			{
				Name: "set", Usage: "set a value; without VALUE, read it from the terminal or standard input",
				ArgsUsage: "KEY [VALUE]",
				Flags: console.OnStack(console.ConfigFileFlag, console.PathFlag,
					&cli.BoolFlag{Name: "secret", Usage: "encrypt the value"},
					&cli.StringFlag{Name: "type", Usage: "store the value as `TYPE`: string, int, bool or float; not set: as " +
						"Pulumi.yaml declares it or, at a path, as it looks"},
					&cli.BoolFlag{Name: "plaintext", Usage: "store the value unencrypted (the default; rejected for " +
						"a key that Pulumi.yaml declares secret)"}),
				Action: console.Action(s, runSet),
			},
			{Name: "get", Usage: "print a value", ArgsUsage: "KEY",
				Flags:  console.OnStack(console.ConfigFileFlag, console.PathFlag, console.JSONFlag),
				Action: console.Action(s, runGet)},
			{Name: "rm", Usage: "remove a value", ArgsUsage: "KEY",
				Flags:  console.OnStack(console.ConfigFileFlag, console.PathFlag),
				Action: console.Action(s, runRm)},
			{Name: "ls", Usage: "list values",
				Flags:  console.OnStack(console.ConfigFileFlag, console.JSONFlag, console.ShowSecretsFlag),
				Action: console.Action(s, runLs)},
		}, configManyCommands(s)...),
	}
}

// Configured opens the configuration of the command's stack. It asks the service only if there is no file yet, so that
// a name that is mistyped gets none.
func Configured(ctx context.Context, s *console.Session) (*project.Secrets, error) {
	if err := s.NeedProject(); err != nil {
		return nil, err
	}
	name, err := s.StackName(ctx)
	if err != nil {
		return nil, err
	}
	if s.Project == nil {
		return nil, s.Elsewhere(name)
	}
	secrets, err := s.Secrets(name)
	if err != nil {
		return nil, err
	}
	return secrets, mustExist(ctx, s, secrets)
}

func runSet(ctx context.Context, s *console.Session) error {
	secret, path := s.Flags.Bool("secret"), s.Flags.Bool("path")
	if secret && s.Flags.Bool("plaintext") {
		return deployments.Errorf(deployments.CodeInvalid, "--secret and --plaintext exclude each other; pass one of "+
			"them")
	}
	secrets, err := Configured(ctx, s)
	if err != nil {
		return err
	}
	name := s.Flags.Args().First()
	if err := oneArgument(s, name); err != nil {
		return err
	}
	if _, err := settableKey(secrets.Stack, name, path, secret); err != nil {
		return err
	}
	text, err := configText(ctx, s, secret)
	if err != nil {
		return err
	}
	set := SetValue{Key: name, Value: text, Secret: secret}
	if set.is, err = configType(s, text); err != nil {
		return err
	}
	if err := Set(ctx, secrets, set, path); err != nil {
		return err
	}
	warnUnread(s, secrets.Stack, set.Key, path)
	return secrets.Stack.Save()
}

// warnUnread warns that nothing reads a key that was set.
func warnUnread(s *console.Session, stack *project.Stack, name string, path bool) {
	key, err := settableKey(stack, name, path, true)
	if err != nil || path && strings.ContainsAny(key.Name(), ".[") {
		return
	}
	if sentence := stack.UnreadKey(key); sentence != "" {
		s.Note("warning: " + sentence)
	}
}

// configType reads --type for a text.
func configType(s *console.Session, text string) (t config.Type, err error) {
	name := s.Flags.String("type")
	switch name {
	case "":
	case "string":
		t = config.TypeString
	case "int":
		t = config.TypeInt
		_, err = strconv.ParseInt(text, 10, 64)
	case "bool":
		t = config.TypeBool
		_, err = strconv.ParseBool(text)
	case "float":
		t = config.TypeFloat
		_, err = strconv.ParseFloat(text, 64)
	default:
		return t, deployments.Errorf(deployments.CodeInvalid, "--type takes string, int, bool or float, not %q", name)
	}
	if err != nil {
		err = deployments.Errorf(deployments.CodeInvalid, "the value is no %s (--type)", name)
	}
	if t != config.TypeUnknown && s.Flags.Bool("secret") {
		err = deployments.Errorf(deployments.CodeInvalid, "--secret and --type exclude each other: a secret is text")
	}
	return t, err
}

// configValue returns a value of the configuration for a key; it encrypts a secret.
func configValue(
	ctx context.Context, secrets *project.Secrets, key config.Key, set SetValue, path bool,
) (config.Value, error) {
	switch {
	case !set.Secret && set.is == config.TypeUnknown:
		return secrets.Stack.Typed(key, set.Value, path), nil
	case !set.Secret:
		return config.NewTypedValue(set.Value, set.is), nil
	}
	crypter, err := secrets.Crypter(ctx)
	if err != nil {
		return config.Value{}, err
	}
	sealed, err := crypter.EncryptValue(ctx, set.Value)
	return config.NewSecureValue(sealed), err
}

// Set sets a value that is not saved yet; with path, its key is a path into a value.
func Set(ctx context.Context, secrets *project.Secrets, set SetValue, path bool) error {
	key, err := settableKey(secrets.Stack, set.Key, path, set.Secret)
	if err == nil {
		err = deployments.CheckUTF8("the value of "+key.String(), set.Value)
	}
	if err != nil {
		return err
	}
	if !path {
		if err := secrets.Stack.CheckType(key, set.Value); err != nil {
			return err
		}
	}
	v, err := configValue(ctx, secrets, key, set, path)
	if err != nil {
		return err
	}
	return secrets.Stack.Set(key, v, path)
}

// settableKey returns the key of a value to be set. Its rules are stricter than those for keys that are already in a
// file. It fails if the project declares the key secret and the value is to be plaintext.
func settableKey(stack *project.Stack, text string, path, secret bool) (config.Key, error) {
	key, err := stack.Key(text, path)
	if err != nil {
		return key, err
	}
	whole := key.String()
	if path { // the rest of the path does not belong to the key
		if i := strings.IndexAny(whole, ".[\""); i > 0 {
			whole = whole[:i]
		}
	}
	err = deployments.ValidateConfigKey(whole)
	if err == nil && !secret {
		err = stack.CheckPlain(key, path)
	}
	return key, err
}

// oneArgument refuses KEY=VALUE as the only argument.
func oneArgument(s *console.Session, text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found || s.Flags.NArg() != 1 || s.Flags.Bool("path") {
		return nil
	}
	return deployments.Errorf(deployments.CodeInvalid, "a configuration key has no \"=\"; key and value are two "+
		"arguments: deployctl config set %s %q", name, value)
}

// configText returns the value: from the argument, the terminal or standard input. Empty standard input is an error,
// because it usually means that a pipe was forgotten.
func configText(ctx context.Context, s *console.Session, secret bool) (string, error) {
	switch {
	case s.Flags.NArg() > 1:
		return s.Flags.Args().Get(1), nil
	case secret && s.Hidden != nil && !s.Flags.Bool("non-interactive"):
		text, err := s.AskHidden("Value: ")
		if err == nil && text == "" {
			err = console.NoValue()
		}
		return text, err
	case s.Asks():
		text, ok, err := s.Ask(ctx, "Value: ")
		if err == nil && !ok {
			s.Say("")
			err = console.NoValue()
		}
		return text, err
	}
	text, err := io.ReadAll(s.In)
	if err == nil && len(text) == 0 {
		return "", deployments.Errorf(deployments.CodeInvalid,
			"no value was given, neither as an argument nor on standard input; to set an empty value, run deployctl "+
				"config set %s ''", s.Flags.Args().First())
	}
	return strings.TrimSuffix(string(text), "\n"), err
}

func runGet(ctx context.Context, s *console.Session) error {
	secrets, err := Configured(ctx, s)
	if err != nil {
		return err
	}
	if v, given, err := declaredConfig(secrets, s.Flags.Args().First()); err != nil || given {
		if err == nil && s.Flags.Bool("json") {
			return s.SayJSON(configItem{Value: &v.Value, Secret: v.Secret})
		}
		if err == nil {
			s.Say("%s", v.Value)
		}
		return err
	}
	what, v, err := storedConfig(s, secrets, s.Flags.Args().First())
	if err != nil {
		return err
	}
	text, err := plainConfig(ctx, s, secrets, what.key, v)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(configItem{Value: &text, Secret: v.Secure()})
	}
	s.Say("%s", text)
	return nil
}

// declaredConfig returns what Pulumi.yaml gives to a key that the stack does not set.
func declaredConfig(secrets *project.Secrets, text string) (v deployments.ConfigValue, given bool, err error) {
	key, err := secrets.Stack.Key(text, false)
	if err != nil {
		return v, false, nil //nolint:nilerr // it may be a path
	}
	all, err := secrets.Stack.Declared()
	v, given = all[key.String()]
	return v, given, err
}

// storedConfig returns the place and the value of a key, or of a path with --path, that has a value.
func storedConfig(s *console.Session, secrets *project.Secrets, text string) (what place, v config.Value, err error) {
	what.path = s.Flags.Bool("path")
	if what.key, err = secrets.Stack.Key(text, what.path); err != nil {
		return what, v, err
	}
	v, ok, err := secrets.Stack.Get(what.key, what.path)
	if err == nil && !ok {
		err = unknownKey(secrets, what.key)
	}
	return what, v, err
}

// plainConfig returns a value in plain text; it decrypts a secret.
func plainConfig(
	ctx context.Context, s *console.Session, secrets *project.Secrets, key config.Key, v config.Value,
) (string, error) {
	if !v.Secure() {
		return v.Value(config.NopDecrypter)
	}
	crypter, err := secrets.Crypter(ctx)
	if err != nil {
		return "", err
	}
	return secrets.Stack.Plain(key, v, crypter)
}

// configItem is one value in --json, in Pulumi's format. The value of a secret is left out unless it is to be shown.
type configItem struct {
	Value  *string `json:"value,omitempty"`
	Secret bool    `json:"secret"`
}

func runLs(ctx context.Context, s *console.Session) error {
	secrets, err := Configured(ctx, s)
	if err != nil {
		return err
	}
	items := map[string]configItem{}
	rows := [][]string{{"KEY", "VALUE"}}
	for _, key := range secrets.Stack.Keys() {
		v, _, err := secrets.Stack.Get(key, false)
		if err != nil {
			return err
		}
		text, item := "[secret]", configItem{Secret: v.Secure()}
		// the value was set before its key was declared secret
		if open := secrets.Stack.CheckPlain(key, false); open != nil && !v.Secure() {
			item.Secret = true
			s.Note("warning: " + open.Error())
		}
		if !item.Secret || s.Flags.Bool("show-secrets") {
			if text, err = plainConfig(ctx, s, secrets, key, v); err != nil {
				return err
			}
			item.Value = &text
		}
		items[key.String()] = item
		rows = append(rows, []string{strings.TrimPrefix(key.String(), s.Project.Name()+":"), text})
	}
	declared, err := secrets.Stack.Declared()
	if err != nil {
		return err
	}
	for _, key := range console.Sorted(declared) {
		v, text, item := declared[key], "[secret]", configItem{Secret: declared[key].Secret}
		if !v.Secret || s.Flags.Bool("show-secrets") {
			text, item.Value = v.Value, &v.Value
		}
		items[key] = item
		rows = append(rows, []string{strings.TrimPrefix(key, s.Project.Name()+":"), text})
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(items)
	}
	return s.SayTable(rows)
}

// unknownKey returns the error that a key has no value in a stack's configuration. It suggests a similar key.
func unknownKey(secrets *project.Secrets, key config.Key) error {
	var names []string
	for _, other := range secrets.Stack.Keys() {
		names = append(names, other.String())
	}
	hint := console.DidYouMean(key.String(), names)
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

// SetValue is a value for the stack's configuration.
type SetValue struct {
	Key, Value string
	Secret     bool
	is         config.Type // of --type
}
