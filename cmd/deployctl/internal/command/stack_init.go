package command

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

func stackInitCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "create a stack and select it", ArgsUsage: "[STACK]",
		Flags: onStack(
			secretsProviderFlag,
			&cli.BoolFlag{Name: "no-select", Usage: "do not select the stack"}),
		Action: action(s, runStackInit),
	}
}

func runStackInit(ctx context.Context, s *session) error {
	text, err := s.stackArgument()
	if err != nil {
		return err
	}
	if text == "" && s.asks() {
		answer, _, err := s.Ask(ctx, "Name of the stack: ")
		if err != nil {
			return err
		}
		text = answer
	}
	name, err := s.parseStack(text)
	if err != nil {
		return err
	}
	return s.initStack(ctx, text, name, s.flags.String("secrets-provider"), !s.flags.Bool("no-select"))
}

// initStack creates a stack, named by text, whose secrets are encrypted by a provider.
func (s *session) initStack(
	ctx context.Context, text string, name deployments.StackName, provider string, selects bool,
) error {
	provider, err := project.ParseProvider(provider)
	if err != nil {
		return err
	}
	if provider != "default" && s.project == nil {
		return deployments.Errorf(deployments.CodeInvalid, "create a stack with a passphrase or a key of its own in its "+
			"project's directory, where its configuration file is stored")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.twoParts(ctx, text, name); err != nil {
		return err
	}
	if provider != "default" {
		if err := s.initSecrets(ctx, name, provider); err != nil {
			return err
		}
	}
	if err := s.service.CreateStack(ctx, name, nil); err != nil {
		if deployments.CodeOf(err) == deployments.CodeExists {
			return deployments.Errorf(deployments.CodeExists, "stack %s already exists; select it with deployctl "+
				"stack select %s", name, name.Stack)
		}
		return err
	}
	if s.project != nil && selects {
		if err := s.selections().Select(s.project, name.String()); err != nil {
			return err
		}
	}
	s.say("Created stack %s.", name)
	if own := s.settings.Get(settings.Organization); name.Organization != own {
		s.say("It is in organization %s; commands that name no organization use %s.", name.Organization, own)
	}
	return nil
}

// initSecrets adds a new data key of a secrets provider to the stack's configuration file, unless it has one of that
// provider.
func (s *session) initSecrets(ctx context.Context, name deployments.StackName, provider string) error {
	secrets, err := s.secrets(name)
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
