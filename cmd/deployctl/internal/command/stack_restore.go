package command

import (
	"context"
	"fmt"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func stackRestoreCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "make an earlier state the stack's newest; real resources are not touched",
		ArgsUsage: "VERSION",
		Description: "deployctl stack history lists the versions that are kept. The restored state does not know " +
			"resources created since, and still " +
			"lists resources deleted since: run deployctl refresh before the next up.",
		Flags:  onStack(yesFlag, forgetFlag),
		Action: action(s, runStackRestore),
	}
}

func runStackRestore(ctx context.Context, s *session) error {
	text := s.flags.Args().First()
	version, err := strconv.Atoi(text)
	if err != nil || version < 1 {
		return deployments.Errorf(deployments.CodeInvalid, "%q is not a version; deployctl stack history lists them",
			text)
	}
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	provider, err := s.exportSecrets(ctx, info.Stack, true)
	if err != nil {
		return err
	}
	if err := s.mustAsk(); err != nil {
		return err
	}
	if !s.flags.Bool("yes") {
		question := fmt.Sprintf("Make version %d the newest state of %s? Later changes are forgotten, but not undone.",
			version, info.Stack)
		if err := s.confirm(ctx, question, nil); err != nil {
			return err
		}
	}
	request := deployments.RestoreRequest{Stack: info.Stack, Version: version, Secrets: provider,
		Forget: s.flags.Bool("force"), Initiator: initiator()}
	next, err := s.service.Restore(ctx, request)
	if deployments.CodeOf(err) == deployments.CodeUnconfirmed {
		if err := s.confirmForgetting(ctx, err, true); err != nil {
			return err
		}
		request.Forget = true
		next, err = s.service.Restore(ctx, request)
	}
	if err != nil {
		return err
	}
	s.say("Version %d of %s restores version %d.\n  deployctl refresh   reads what has changed since", next, info.Stack,
		version)
	return nil
}
