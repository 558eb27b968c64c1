package command

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func stackSelectCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "select", Usage: "select the stack that commands in this project use", ArgsUsage: "[STACK]",
		Flags:  onStack(&cli.BoolFlag{Name: "create", Usage: "create it if it does not exist"}),
		Action: action(s, runStackSelect),
	}
}

func runStackSelect(ctx context.Context, s *session) error {
	if err := s.needProject(); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	text, err := s.stackArgument()
	if err != nil {
		return err
	}
	name, err := s.chosen(ctx, text)
	if err != nil {
		return err
	}
	_, err = s.service.Stack(ctx, name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		if !s.flags.Bool("create") {
			return s.unknownStack(ctx, name)
		}
		if err := s.twoParts(ctx, text, name); err != nil {
			return err
		}
		err = s.service.CreateStack(ctx, name, nil)
	}
	if err != nil {
		return err
	}
	if s.project == nil {
		return s.elsewhere(name)
	}
	if err := s.selections().Select(s.project, name.String()); err != nil {
		return err
	}
	s.say("Stack %s is selected.", name)
	return nil
}

func (s *session) chosen(ctx context.Context, text string) (deployments.StackName, error) {
	if text == "" {
		return s.onlyStack(ctx)
	}
	return s.parseStack(text)
}
