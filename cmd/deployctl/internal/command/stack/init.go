package stack

import (
	"context"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// initCommand returns deployctl init.
func initCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "create a stack and select it", ArgsUsage: "[STACK]",
		Flags: console.OnStack(
			console.SecretsProviderFlag,
			&cli.BoolFlag{Name: "no-select", Usage: "do not select the stack"},
			&cli.StringFlag{Name: "identity", Usage: "`IDENTITY` of a stack that is gone, whose resources this one finds " +
				"again: its first name, ORG/PROJECT/STACK, as deployctl stack showed; needs the role admin"}),
		Action: console.Action(s, runInit),
	}
}

func runInit(ctx context.Context, s *console.Session) error {
	text, err := s.StackArgument()
	if err != nil {
		return err
	}
	if text == "" && s.Asks() {
		answer, _, err := s.Ask(ctx, "Name of the stack: ")
		if err != nil {
			return err
		}
		text = answer
	}
	name, err := s.ParseStack(text)
	if err != nil {
		return err
	}
	identity := s.Flags.String("identity")
	if identity != "" {
		if _, err := deployments.ParseIdentity(identity); err != nil {
			return err
		}
	}
	return initStack(ctx, s, text, name, s.Flags.String("secrets-provider"), !s.Flags.Bool("no-select"),
		func() error {
			if identity != "" {
				return s.Service.RecreateStack(ctx, deployments.Caller{}, name, identity)
			}
			return s.Service.CreateStack(ctx, name, nil)
		})
}

// InitStack creates a stack, named by text, whose secrets are encrypted by a provider.
func InitStack(
	ctx context.Context, s *console.Session, text string, name deployments.StackName, provider string, selects bool,
) error {
	return initStack(ctx, s, text, name, provider, selects, func() error { return s.Service.CreateStack(ctx, name, nil) })
}

func initStack(
	ctx context.Context, s *console.Session, text string, name deployments.StackName, provider string, selects bool,
	create func() error,
) error {
	provider, err := project.ParseProvider(provider)
	if err != nil {
		return err
	}
	if provider != "default" && s.Project == nil {
		return deployments.Errorf(deployments.CodeInvalid, "create a stack with a passphrase or a key of its own in its "+
			"project's directory, where its configuration file is stored")
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	if err := s.TwoParts(ctx, text, name); err != nil {
		return err
	}
	if provider != "default" {
		if err := initSecrets(ctx, s, name, provider); err != nil {
			return err
		}
	}
	if err := create(); err != nil {
		if deployments.CodeOf(err) == deployments.CodeExists {
			return deployments.Errorf(deployments.CodeExists, "stack %s already exists; select it with deployctl "+
				"stack select %s", name, name.Stack)
		}
		return err
	}
	if s.Project != nil && selects {
		if err := s.Selections().Select(s.Project, name.String()); err != nil {
			return err
		}
	}
	s.Say("Created stack %s.", name)
	if own := s.Settings.Get(settings.Organization); name.Organization != own {
		s.Say("It is in organization %s; commands that name no organization use %s.", name.Organization, own)
	}
	return nil
}

// initSecrets adds a new data key of a secrets provider to the stack's configuration file, unless it has one of that
// provider.
func initSecrets(ctx context.Context, s *console.Session, name deployments.StackName, provider string) error {
	secrets, err := s.Secrets(name)
	if err != nil {
		return err
	}
	found, err := secrets.Describe()
	if err != nil {
		return err
	}
	if found.Type == provider || found.URL == provider {
		_, err := secrets.Provider(ctx) // it can be used
		return err
	}
	if err := secrets.Use(ctx, provider); err != nil {
		return err
	}
	return secrets.Stack.Save()
}
