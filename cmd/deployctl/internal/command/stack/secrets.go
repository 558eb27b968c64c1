package stack

import (
	"context"
	"os"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/urfave/cli/v2"
)

// secretsCommand returns deployctl secrets.
func secretsCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "change-secrets-provider", ArgsUsage: "PROVIDER",
		Usage: "encrypt the secrets of the stack's configuration and state with another provider",
		Description: "PROVIDER is default (the service's own key), passphrase, or the URL of a key of AWS KMS, Azure " +
			"Key Vault, Google Cloud KMS or Vault: awskms://, azurekeyvault://, gcpkms://, hashivault://. A " +
			"passphrase or a key gets a new data key, also if the stack has the same one already. The state becomes a " +
			"new version; versions before it keep their encryption, and so need the passphrase or key that they had.",
		Flags:  console.OnStack(),
		Action: console.Action(s, runSecrets),
	}
}

func runSecrets(ctx context.Context, s *console.Session) error {
	provider, err := project.ParseProvider(s.Flags.Args().First())
	if err != nil {
		return err
	}
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	if err := s.NeedProject(); err != nil {
		return err
	}
	if s.Project.Name() != info.Stack.Project {
		return deployments.Errorf(deployments.CodeInvalid, "%s is of another project: run the command in its "+
			"directory, where its configuration file is", info.Stack)
	}
	secrets, err := s.Secrets(info.Stack)
	if err != nil {
		return err
	}
	from, to, err := secrets.Change(ctx, provider)
	if err != nil {
		return err
	}
	if from.Type == deployments.SecretsService && to.Type == from.Type {
		s.Say("The secrets of %s are encrypted with the service's own key already.", info.Stack)
		return nil
	}
	// The new salt must not be lost once the state needs it, nor the old one while the state needs that.
	path := secrets.Stack.Path
	aside := strings.TrimSuffix(path, ".yaml") + ".new.yaml"
	if err := secrets.Stack.SaveAside(aside); err != nil {
		return err
	}
	version, err := encryptState(ctx, s, info, from, to)
	if err == nil {
		err = secrets.Stack.Save()
	}
	if err != nil {
		return deployments.Errorf(deployments.CodeOf(err), "%w; the configuration with the new encryption is in %s",
			err, aside)
	}
	if err := os.Remove(aside); err != nil {
		return err
	}
	s.Say("The secrets of %s are encrypted with the provider %s, in %s and in version %d of its state.", info.Stack,
		provider, path, version)
	return nil
}

// encryptState makes a version of the stack whose secrets are encrypted by another provider.
func encryptState(
	ctx context.Context, s *console.Session, info deployments.StackInfo, from, to deployments.SecretsProvider,
) (int, error) {
	if info.Version == 0 {
		return 0, nil
	}
	edited, err := s.Service.EditState(ctx, deployments.EditRequest{
		Stack: info.Stack, Edit: deployments.EditEncrypt, BaseVersion: &info.Version, Secrets: from, NewSecrets: to,
		Initiator: console.Initiator(),
	})
	return edited.Version, err
}
