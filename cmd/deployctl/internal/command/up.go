package command

import (
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

func upCommand(s *Surroundings) *cli.Command {
	return &cli.Command{
		Name: "up", Aliases: []string{"update"}, Usage: "make the stack what the program says",
		Flags:  changeFlags(refreshFlag, replaceFlag),
		Action: action(s, change(engine.KindUp)),
	}
}
