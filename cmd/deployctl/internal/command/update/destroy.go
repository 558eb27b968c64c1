package update

import (
	"context"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/stack"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

// DestroyCommand returns deployctl destroy.
func DestroyCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "destroy", Aliases: []string{"down"}, Usage: "delete every resource of the stack; the stack itself stays",
		Description: changeExits,
		Flags: changeFlags(refreshFlag, ignoreProtectFlag, console.ExcludeProtectedFlag, console.RunProgramFlag,
			previewOnlyFlag,
			&cli.BoolFlag{Name: "remove", Usage: "remove the stack and its configuration file afterwards"}),
		Action: console.Action(s, runDestroy),
	}
}

func runDestroy(ctx context.Context, s *console.Session) error {
	remove := s.Flags.Bool("remove")
	if remove && s.Flags.Bool("preview-only") {
		return deployments.Errorf(deployments.CodeInvalid, "--remove and --preview-only exclude each other; pass one of "+
			"them")
	}
	if err := change(engine.KindDestroy)(ctx, s); err != nil || !remove {
		return err
	}
	left, err := existingStack(ctx, s)
	if err != nil {
		return err
	}
	if left.Resources > 0 {
		return deployments.Errorf(deployments.CodeInvalid, "stack %s still has %s, so it was not removed; "+
			"destroy them, too", left.Stack, console.Counted(left.Resources, "resource", "resources"))
	}
	return stack.Remove(ctx, s, left.Stack)
}
