package command

import (
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

func destroyCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "destroy", Aliases: []string{"down"}, Usage: "delete every resource of the stack; the stack itself stays",
		Description: changeExits,
		Flags:       changeFlags(refreshFlag, ignoreProtectFlag, excludeProtectedFlag),
		Action:      action(s, change(engine.KindDestroy)),
	}
}
