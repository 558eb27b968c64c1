package command

import (
	"context"

	"github.com/urfave/cli/v2"
)

func stackUnselectCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "unselect", Usage: "select no stack: commands then need --stack, if the project has several",
		Flags: common(), Action: action(s, runStackUnselect),
	}
}

func runStackUnselect(_ context.Context, s *session) error {
	if err := s.needProject(); err != nil {
		return err
	}
	if err := s.selections().Select(s.project, ""); err != nil {
		return err
	}
	s.say("No stack of project %s is selected.", s.project.Name())
	return nil
}
