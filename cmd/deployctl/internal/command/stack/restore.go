package stack

import (
	"context"
	"fmt"
	"strconv"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// restoreCommand returns deployctl restore.
func restoreCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "make an earlier state the stack's newest; real resources are not touched",
		ArgsUsage: "VERSION",
		Description: "deployctl stack history lists the versions that are kept. The restored state does not know " +
			"resources created since, and still " +
			"lists resources deleted since: run deployctl refresh before the next up.",
		Flags:  console.OnStack(console.YesFlag, forgetFlag),
		Action: console.Action(s, runRestore),
	}
}

func runRestore(ctx context.Context, s *console.Session) error {
	text := s.Flags.Args().First()
	version, err := strconv.Atoi(text)
	if err != nil || version < 1 {
		return deployments.Errorf(deployments.CodeInvalid, "%q is not a version; deployctl stack history lists them",
			text)
	}
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	provider, err := s.ExportSecrets(ctx, info.Stack, true)
	if err != nil {
		return err
	}
	if !s.Flags.Bool("yes") {
		if version > info.Version {
			return deployments.Errorf(deployments.CodeNotFound, "the stack %s has no version %d; `deployctl stack history` "+
				"lists those there are", info.Stack, version)
		}
		if err := s.MustAsk(); err != nil {
			return err
		}
		question := fmt.Sprintf("Make version %d the newest state of %s? Later changes are forgotten, but not undone.",
			version, info.Stack)
		if err := s.Confirm(ctx, question, nil); err != nil {
			return err
		}
	}
	request := deployments.RestoreRequest{Stack: info.Stack, Version: version, Secrets: provider,
		Forget: s.Flags.Bool("force"), Initiator: console.Initiator()}
	next, err := s.Service.Restore(ctx, request)
	if deployments.CodeOf(err) == deployments.CodeUnconfirmed {
		if err := s.ConfirmForgetting(ctx, err, true); err != nil {
			return err
		}
		request.Forget = true
		next, err = s.Service.Restore(ctx, request)
	}
	if err != nil {
		return err
	}
	s.Say("Version %d of %s restores version %d.\n  deployctl refresh   reads what has changed since", next, info.Stack,
		version)
	return nil
}
