package update

import (
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

// UpCommand returns deployctl up.
func UpCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "up", Aliases: []string{"update", "deploy"}, Usage: "update the stack to what the program declares",
		Description: changeExits,
		Flags: changeFlags(refreshFlag, replaceFlag, adoptFlag, forceFlag, ignoreProtectFlag, policyPackFlag,
			policyPackConfigFlag,
			&cli.StringFlag{Name: "plan", Usage: "make the changes of the plan in `FILE`, which deployctl preview " +
				"--save-plan has written, and stop before others"}),
		Action: console.Action(s, change(engine.KindUp)),
	}
}
