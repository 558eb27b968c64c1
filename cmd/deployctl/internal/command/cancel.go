package command

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"
)

func cancelCommand(s *Surroundings) *cli.Command {
	return &cli.Command{
		Name: "cancel", Usage: "end a running or waiting update", ArgsUsage: "[UPDATE]",
		Description: "Steps that run are let finish, nothing new starts. UPDATE is ORG/PROJECT/STACK/VERSION or VERSION; by default the stack's running update.",
		Flags:       onStack(yesFlag, &cli.BoolFlag{Name: "force", Usage: "also cancel the steps that run"}),
		Action:      action(s, runCancel),
	}
}

func runCancel(ctx context.Context, s *session) error {
	u, err := s.updateOf(ctx, s.flags.Args().First(), false)
	if err != nil {
		return err
	}
	force := s.flags.Bool("force")
	question := fmt.Sprintf("Cancel %s? What runs is finished, nothing new starts.", u.Update)
	if force {
		question = fmt.Sprintf("Cancel %s and its running steps? What they did may stay unknown.", u.Update)
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
		s.say("  deployctl cancel --force %s   also cancels the steps that run", u.Update)
	}
	return nil
}
