package command

import (
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

func refreshCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "refresh", Usage: "read every resource's real properties into the stack's state",
		Description: changeExits,
		Flags:       changeFlags(),
		Action:      action(s, change(engine.KindRefresh)),
	}
}
