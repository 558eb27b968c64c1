package update

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
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
	if err := s.MustAsk(); err != nil {
		return err
	}
	if s.Asks() && !s.Flags.Bool("yes") {
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
