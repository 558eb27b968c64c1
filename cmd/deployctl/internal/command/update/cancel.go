package update

import (
	"context"
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// CancelCommand returns deployctl cancel.
func CancelCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "cancel", Usage: "cancel a running or waiting update", ArgsUsage: "[UPDATE]",
		Description: "Running steps finish, and nothing new starts. UPDATE is ORG/PROJECT/STACK/VERSION or VERSION; " +
			"not given: the stack's " +
			"running update.\nThe exit code is 3 if you decline, else 0 as soon as the update has the request.",
		Flags: console.OnStack(console.YesFlag, &cli.BoolFlag{Name: "force",
			Usage: "also cancel the running steps; whether they " +
				"took effect may stay unknown"}),
		Action: console.Action(s, runCancel),
	}
}

func runCancel(ctx context.Context, s *console.Session) error {
	u, err := updateOf(ctx, s, s.Flags.Args().First(), false)
	if err != nil {
		return err
	}
	force := s.Flags.Bool("force")
	question := fmt.Sprintf("Cancel %s? Running steps finish, and nothing new starts.", u.Update)
	if force {
		question = fmt.Sprintf("Cancel %s and its running steps? Whether they took effect may stay unknown.", u.Update)
	}
	if !s.Flags.Bool("yes") {
		if err := mayBeCancelled(ctx, s, u.Update); err != nil {
			return err
		}
		if err := s.MustAsk(); err != nil {
			return err
		}
		if err := s.Confirm(ctx, question, nil); err != nil {
			return err
		}
	}
	if err := s.Service.Cancel(ctx, u.Update, force); err != nil {
		return err
	}
	s.Say("%s is being cancelled.\n  deployctl attach %s   shows how it ends", u.Update, u.Update)
	if !force {
		s.Say("  deployctl cancel --force %s   also cancels the running steps", u.Update)
	}
	return nil
}

// mayBeCancelled reports that an update, of a stack that is known, neither runs nor waits. Whether a preview runs is
// found out by the attempt.
func mayBeCancelled(ctx context.Context, s *console.Session, u deployments.UpdateName) error {
	info, err := s.Service.Stack(ctx, u.StackName)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return s.UnknownStack(ctx, u.StackName)
	}
	is := func(other deployments.UpdateInfo) bool { return other.Update == u }
	if err != nil || u.Number() == 0 || info.Active != nil && is(*info.Active) || slices.ContainsFunc(info.Queued, is) {
		return nil //nolint:nilerr // the attempt says what is wrong
	}
	return deployments.Errorf(deployments.CodeNotFound, "update %s neither runs nor waits; `deployctl stack history` "+
		"lists those that did", u)
}
