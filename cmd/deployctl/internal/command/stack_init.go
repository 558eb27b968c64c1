package command

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/settings"
	"github.com/urfave/cli/v2"
)

func stackInitCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "create a stack and select it", ArgsUsage: "[STACK]",
		Flags: onStack(
			&cli.StringFlag{Name: "secrets-provider", Usage: "`TYPE` of secrets encryption: default (the service's " +
				"own key) or passphrase", Value: "default"},
			&cli.BoolFlag{Name: "no-select", Usage: "do not select the stack"}),
		Action: action(s, runStackInit),
	}
}

func runStackInit(ctx context.Context, s *session) error {
	text := s.flags.Args().First()
	if text == "" {
		text = s.flags.String("stack")
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
	provider := s.flags.String("secrets-provider")
	if provider != "default" && provider != deployments.SecretsPassphrase {
		return deployments.Errorf(deployments.CodeInvalid, "--secrets-provider takes default or passphrase, not %q",
			provider)
	}
	if provider == deployments.SecretsPassphrase && s.project == nil {
		return deployments.Errorf(deployments.CodeInvalid, "create a stack with a passphrase in its project's "+
			"directory, where its configuration file is stored")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if provider == deployments.SecretsPassphrase {
		if err := s.initPassphrase(name); err != nil {
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
	if s.project != nil && !s.flags.Bool("no-select") {
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

// initPassphrase adds the salt of a passphrase to the stack's configuration file, unless it has one.
func (s *session) initPassphrase(name deployments.StackName) error {
	secrets, err := s.secrets(name)
	if err != nil {
		return err
	}
	if found, err := secrets.Provider(); err != nil || found.Type == deployments.SecretsPassphrase {
		return err
	}
	if err := secrets.UsePassphrase(); err != nil {
		return err
	}
	return secrets.Stack.Save()
}
