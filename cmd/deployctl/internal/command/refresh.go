package command

import (
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

func refreshCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "refresh", Usage: "read every resource's real properties into the stack's state",
		Description: changeExits,
		Flags: changeFlags(runProgramFlag, previewOnlyFlag,
			&cli.BoolFlag{Name: "clear-pending-creates", Usage: "forget creates of earlier updates if it cannot be found " +
				"out whether they were made"}),
		Action: action(s, change(engine.KindRefresh)),
	}
}
