package update

import (
	"context"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// AttachCommand returns deployctl attach.
func AttachCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "attach", Usage: "replay an update from its start, and follow it to its end", ArgsUsage: "[UPDATE]",
		Description: "UPDATE is ORG/PROJECT/STACK/VERSION, as deployctl prints it, or VERSION; not given: the " +
			"stack's running or latest update.\n" +
			"The exit code is that of the update. After Ctrl-C it is 130, and the update continues.",
		Flags:  console.OnStack(console.JSONFlag, console.QuietFlag),
		Action: console.Action(s, runAttach),
	}
}

func runAttach(ctx context.Context, s *console.Session) error {
	u, err := updateOf(ctx, s, s.Flags.Args().First(), true)
	if err != nil {
		return err
	}
	return follow(ctx, s, deployments.Accepted{Update: u.Update}, u.Kind, nil)
}

// updateOf returns the update that text names; if text is empty, the stack's running update or, with ended, its latest.
func updateOf(ctx context.Context, s *console.Session, text string, ended bool) (deployments.UpdateInfo, error) {
	if name, err := deployments.ParseUpdateName(text); err == nil {
		return deployments.UpdateInfo{Update: name, Kind: "update"}, s.Dial(ctx)
	}
	stack, err := s.ConnectedStack(ctx)
	if err != nil {
		return deployments.UpdateInfo{}, err
	}
	if text != "" {
		name := deployments.UpdateName{StackName: stack, Version: text}
		return deployments.UpdateInfo{Update: name, Kind: "update"}, deployments.ValidateName("update", text)
	}
	return latestOf(ctx, s, stack, ended)
}

// latestOf returns the update of a stack that is running or, with ended, the last one that was.
func latestOf(
	ctx context.Context, s *console.Session, stack deployments.StackName, ended bool,
) (deployments.UpdateInfo, error) {
	info, err := s.Service.Stack(ctx, stack)
	if err != nil {
		return deployments.UpdateInfo{}, err
	}
	if info.Active != nil {
		return *info.Active, nil
	}
	if ended {
		if history, err := s.Service.History(ctx, stack, 1); err != nil || len(history) > 0 {
			return append(history, deployments.UpdateInfo{})[0], err
		}
	}
	return deployments.UpdateInfo{}, deployments.Errorf(deployments.CodeNotFound, "stack %s has no running update",
		stack)
}
