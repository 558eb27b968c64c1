package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// rmCommand returns deployctl rm.
func rmCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "remove a stack, its history and its configuration file", ArgsUsage: "[STACK]",
		Flags: console.OnStack(console.YesFlag,
			&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "remove it even if it has resources; they " +
				"stay, unmanaged"},
			&cli.BoolFlag{Name: "preserve-config", Usage: "keep the configuration file"}),
		Action: console.Action(s, runRm),
	}
}

func runRm(ctx context.Context, s *console.Session) error {
	text, err := s.StackArgument()
	if err != nil {
		return err
	}
	var name deployments.StackName
	if text != "" {
		name, err = s.ParseStack(text)
	} else {
		name, err = s.StackName(ctx)
	}
	if err == nil {
		err = s.Dial(ctx)
	}
	if err != nil {
		return err
	}
	info, err := s.Service.Stack(ctx, name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return s.UnknownStack(ctx, name)
	}
	lost := s.Flags.Bool("force") && deployments.CodeOf(err) == deployments.CodeFormat // the service looks
	if err != nil && !lost {
		return err
	}
	if info.Resources > 1 && !s.Flags.Bool("force") { // one may be the stack's own: the service looks
		return deployments.Errorf(deployments.CodeInvalid,
			"stack %s still has %s; destroy them first (deployctl destroy), or pass --force to forget them",
			name, console.Counted(info.Resources, "resource", "resources"))
	}
	if !s.Flags.Bool("yes") {
		if err := s.MustAsk(); err != nil {
			return err
		}
		if err := confirmName(ctx, s, name, "This removes stack %s and its history."); err != nil {
			return err
		}
	}
	return Remove(ctx, s, name)
}

// Remove removes a stack, its selection and its configuration file.
func Remove(ctx context.Context, s *console.Session, name deployments.StackName) error {
	if err := s.Service.RemoveStack(ctx, name, s.Flags.Bool("force")); err != nil {
		return err
	}
	s.Say("Removed stack %s.", name)
	return forget(s, name)
}

// confirmName says what is about to happen to a stack, and asks the user to type its name, to prevent an accidental
// confirmation.
func confirmName(ctx context.Context, s *console.Session, name deployments.StackName, what string) error {
	answer, _, err := s.Ask(ctx, fmt.Sprintf(what, name)+" Type its name to confirm: ")
	if err != nil {
		return err
	}
	if answer != name.Stack && answer != name.String() {
		return s.Declined()
	}
	return nil
}

// forget removes a stack's selection and configuration file.
func forget(s *console.Session, name deployments.StackName) error {
	if s.Project == nil {
		return nil
	}
	selected, err := s.Selections().Selected(s.Project)
	if err == nil && selected == name.String() {
		err = s.Selections().Select(s.Project, "")
	}
	if err != nil || s.Flags.Bool("preserve-config") {
		return err
	}
	file, err := s.Project.Stack(name.Stack)
	if err != nil {
		return err
	}
	if err := os.Remove(file.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
