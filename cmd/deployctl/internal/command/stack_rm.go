package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func stackRmCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "remove a stack, its history and its configuration file", ArgsUsage: "[STACK]",
		Flags: onStack(yesFlag,
			&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "remove it even if it has resources; they " +
				"stay, unmanaged"},
			&cli.BoolFlag{Name: "preserve-config", Usage: "keep the configuration file"}),
		Action: action(s, runStackRm),
	}
}

func runStackRm(ctx context.Context, s *session) error {
	if err := s.mustAsk(); err != nil {
		return err
	}
	text, err := s.stackArgument()
	if err != nil {
		return err
	}
	var name deployments.StackName
	if text != "" {
		name, err = s.parseStack(text)
	} else {
		name, err = s.stackName(ctx)
	}
	if err == nil {
		err = s.connect(ctx)
	}
	if err != nil {
		return err
	}
	info, err := s.service.Stack(ctx, name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return s.unknownStack(ctx, name)
	}
	if err != nil {
		return err
	}
	if info.Resources > 1 && !s.flags.Bool("force") { // one may be the stack's own: the service looks
		return deployments.Errorf(deployments.CodeInvalid,
			"stack %s still has %s; destroy them first (deployctl destroy), or pass --force to forget them",
			name, counted(info.Resources, "resource", "resources"))
	}
	if !s.flags.Bool("yes") {
		if err := s.confirmName(ctx, name, "This removes stack %s and its history."); err != nil {
			return err
		}
	}
	return s.remove(ctx, name)
}

// remove removes a stack, its selection and its configuration file.
func (s *session) remove(ctx context.Context, name deployments.StackName) error {
	if err := s.service.RemoveStack(ctx, name, s.flags.Bool("force")); err != nil {
		return err
	}
	s.say("Removed stack %s.", name)
	return s.forget(name)
}

// confirmName says what is about to happen to a stack, and asks the user to type its name, to prevent an accidental
// confirmation.
func (s *session) confirmName(ctx context.Context, name deployments.StackName, what string) error {
	answer, _, err := s.Ask(ctx, fmt.Sprintf(what, name)+" Type its name to confirm: ")
	if err != nil {
		return err
	}
	if answer != name.Stack && answer != name.String() {
		return s.declined()
	}
	return nil
}

// forget removes a stack's selection and configuration file.
func (s *session) forget(name deployments.StackName) error {
	if s.project == nil {
		return nil
	}
	selected, err := s.selections().Selected(s.project)
	if err == nil && selected == name.String() {
		err = s.selections().Select(s.project, "")
	}
	if err != nil || s.flags.Bool("preserve-config") {
		return err
	}
	file, err := s.project.Stack(name.Stack)
	if err != nil {
		return err
	}
	if err := os.Remove(file.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
