package command

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func stackRenameCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "rename", Usage: "rename the stack; its resources stay", ArgsUsage: "NEW",
		Flags:  onStack(),
		Action: action(s, runStackRename),
	}
}

func runStackRename(ctx context.Context, s *session) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	from := info.Stack
	here := s.project
	to, err := deployments.ParseStackName(s.flags.Args().First(), from)
	if err != nil {
		return err
	}
	if err := s.service.RenameStack(ctx, deployments.RenameRequest{From: from, To: to,
		Initiator: initiator()}); err != nil {
		return err
	}
	s.say("Stack %s is now %s.", from, to)
	if here == nil || to.Project != from.Project {
		return nil
	}
	before, err := here.Stack(from.Stack)
	if err != nil {
		return err
	}
	after, err := here.Stack(to.Stack)
	if err != nil {
		return err
	}
	if err := os.Rename(before.Path, after.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if selected, err := s.selections().Selected(here); err != nil || selected != from.String() {
		return err
	}
	return s.selections().Select(here, to.String())
}
