package command

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"
)

func cancelCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "cancel", Usage: "cancel a running or waiting update", ArgsUsage: "[UPDATE]",
		Description: "Running steps finish, and nothing new starts. UPDATE is ORG/PROJECT/STACK/VERSION or VERSION; " +
			"not given: the stack's " +
			"running update.\nThe exit code is 3 if you decline, else 0 as soon as the update has the request.",
		Flags: onStack(yesFlag, &cli.BoolFlag{Name: "force", Usage: "also cancel the running steps; whether they " +
			"took effect may stay unknown"}),
		Action: action(s, runCancel),
	}
}

func runCancel(ctx context.Context, s *session) error {
	u, err := s.updateOf(ctx, s.flags.Args().First(), false)
	if err != nil {
		return err
	}
	force := s.flags.Bool("force")
	question := fmt.Sprintf("Cancel %s? Running steps finish, and nothing new starts.", u.Update)
	if force {
		question = fmt.Sprintf("Cancel %s and its running steps? Whether they took effect may stay unknown.", u.Update)
	}
	if err := s.mustAsk(); err != nil {
		return err
	}
	if s.asks() && !s.flags.Bool("yes") {
		if err := s.confirm(ctx, question, nil); err != nil {
			return err
		}
	}
	if err := s.service.Cancel(ctx, u.Update, force); err != nil {
		return err
	}
	s.say("%s is being cancelled.\n  deployctl attach %s   shows how it ends", u.Update, u.Update)
	if !force {
		s.say("  deployctl cancel --force %s   also cancels the running steps", u.Update)
	}
	return nil
}
