package stack

import (
	"context"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/urfave/cli/v2"
)

// unselectCommand returns deployctl unselect.
func unselectCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "unselect", Usage: "select no stack: commands then need --stack, if the project has several",
		Flags: console.Common(), Action: console.Action(s, runUnselect),
	}
}

func runUnselect(_ context.Context, s *console.Session) error {
	if err := s.NeedProject(); err != nil {
		return err
	}
	if err := s.Selections().Select(s.Project, ""); err != nil {
		return err
	}
	s.Say("No stack of project %s is selected.", s.Project.Name())
	return nil
}
