package stack

import (
	"context"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// selectCommand returns deployctl select.
func selectCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "select", Usage: "select the stack that commands in this project use", ArgsUsage: "[STACK]",
		Flags:  console.OnStack(&cli.BoolFlag{Name: "create", Usage: "create it if it does not exist"}),
		Action: console.Action(s, runSelect),
	}
}

func runSelect(ctx context.Context, s *console.Session) error {
	if err := s.NeedProject(); err != nil {
		return err
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	text, err := s.StackArgument()
	if err != nil {
		return err
	}
	name, err := chosen(ctx, s, text)
	if err != nil {
		return err
	}
	_, err = s.Service.Stack(ctx, name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		if !s.Flags.Bool("create") {
			return s.UnknownStack(ctx, name)
		}
		if err := s.TwoParts(ctx, text, name); err != nil {
			return err
		}
		err = s.Service.CreateStack(ctx, name, nil)
	}
	if err != nil {
		return err
	}
	if s.Project == nil {
		return s.Elsewhere(name)
	}
	if err := s.Selections().Select(s.Project, name.String()); err != nil {
		return err
	}
	s.Say("Stack %s is selected.", name)
	return nil
}

func chosen(ctx context.Context, s *console.Session, text string) (deployments.StackName, error) {
	if text == "" {
		return s.OnlyStack(ctx)
	}
	return s.ParseStack(text)
}
