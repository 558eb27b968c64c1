package update

import (
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

// RefreshCommand returns deployctl refresh.
func RefreshCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "refresh", Usage: "read every resource's real properties into the stack's state",
		Description: changeExits,
		Flags: changeFlags(console.RunProgramFlag, previewOnlyFlag,
			&cli.BoolFlag{Name: "clear-pending-creates", Usage: "forget creates of earlier updates if it cannot be found " +
				"out whether they were made"}),
		Action: console.Action(s, change(engine.KindRefresh)),
	}
}
