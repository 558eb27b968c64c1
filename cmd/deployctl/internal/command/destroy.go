package command

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

func destroyCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "destroy", Aliases: []string{"down"}, Usage: "delete every resource of the stack; the stack itself stays",
		Description: changeExits,
		Flags: changeFlags(refreshFlag, ignoreProtectFlag, excludeProtectedFlag, runProgramFlag, previewOnlyFlag,
			&cli.BoolFlag{Name: "remove", Usage: "remove the stack and its configuration file afterwards"}),
		Action: action(s, runDestroy),
	}
}

func runDestroy(ctx context.Context, s *session) error {
	remove := s.flags.Bool("remove")
	if remove && s.flags.Bool("preview-only") {
		return deployments.Errorf(deployments.CodeInvalid, "--remove and --preview-only exclude each other; pass one of "+
			"them")
	}
	if err := change(engine.KindDestroy)(ctx, s); err != nil || !remove {
		return err
	}
	stack, err := s.existingStack(ctx)
	if err != nil {
		return err
	}
	if stack.Resources > 0 {
		return deployments.Errorf(deployments.CodeInvalid, "stack %s still has %s, so it was not removed; "+
			"destroy them, too", stack.Stack, counted(stack.Resources, "resource", "resources"))
	}
	return s.remove(ctx, stack.Stack)
}
