package state

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// Flags of the commands that change a state.
var (
	allResourcesFlag = &cli.BoolFlag{Name: "all", Usage: "change every resource of the stack"}
	copyFlag         = &cli.StringFlag{Name: "id", Usage: "of several copies with one URN, the one with this `ID`"}
)

// deleteCommand returns deployctl delete.
func deleteCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "delete", Aliases: []string{"rm"}, ArgsUsage: "[RESOURCE...]",
		Usage: "delete resources from the state; they go on existing, and nothing manages them any more",
		Description: "RESOURCE is a URN, or a name that only one resource has. A resource on which others depend is " +
			"not deleted without them.",
		Flags: console.OnStack(console.YesFlag, console.JSONFlag, allResourcesFlag, copyFlag,
			&cli.BoolFlag{Name: "force", Usage: "delete protected resources, too, and the last ones of the stack " +
				"(which needs the role admin)"},
			&cli.BoolFlag{Name: "target-dependents", Usage: "delete what depends on the resources, too"}),
		Action: console.Action(s, func(ctx context.Context, session *console.Session) error {
			return editResources(ctx, session, deployments.EditDelete,
				"Delete these from the state of %s? The real resources stay.")
		}),
	}
}

// protectCommand returns deployctl protect.
func protectCommand(s *console.Env) *cli.Command {
	return markCommand(s, deployments.EditProtect, "protect resources: no update deletes or replaces them", "")
}

// unprotectCommand returns deployctl unprotect.
func unprotectCommand(s *console.Env) *cli.Command {
	return markCommand(s, deployments.EditUnprotect, "let updates delete and replace protected resources again",
		"Remove the protection of these resources of %s?")
}

// taintCommand returns deployctl taint.
func taintCommand(s *console.Env) *cli.Command {
	return markCommand(s, deployments.EditTaint, "make the next up replace resources", "")
}

// untaintCommand returns deployctl untaint.
func untaintCommand(s *console.Env) *cli.Command {
	return markCommand(s, deployments.EditUntaint, "let the next up keep tainted resources", "")
}

// markCommand returns a command that sets or clears a mark. A question, if there is one, is asked first.
func markCommand(s *console.Env, edit deployments.EditKind, usage, question string) *cli.Command {
	return &cli.Command{
		Name: string(edit), Usage: usage, ArgsUsage: "[RESOURCE...]",
		Description: "RESOURCE is a URN, or a name that only one resource has.",
		Flags:       console.OnStack(console.YesFlag, console.JSONFlag, allResourcesFlag, copyFlag),
		Action: console.Action(s, func(ctx context.Context, session *console.Session) error {
			return editResources(ctx, session, edit, question)
		}),
	}
}

// editResources edits the resources that the arguments name, or all.
func editResources(ctx context.Context, s *console.Session, edit deployments.EditKind, question string) error {
	words, all := s.Flags.Args().Slice(), s.Flags.Bool("all")
	if len(words) > 0 == all {
		return deployments.Errorf(deployments.CodeInvalid, "name the resources, or pass --all; deployctl state ls "+
			"lists them")
	}
	request, err := editRequest(ctx, s, edit, words)
	if err != nil {
		return err
	}
	request.All, request.ID = all, s.Flags.String("id")
	request.Force, request.Dependents = s.Flags.Bool("force"), s.Flags.Bool("target-dependents")
	if question != "" {
		question = fmt.Sprintf(question, request.Stack)
	}
	return editState(ctx, s, request, question)
}

// editRequest returns an edit of the resources that words name, in the newest state.
func editRequest(
	ctx context.Context, s *console.Session, edit deployments.EditKind, words []string,
) (deployments.EditRequest, error) {
	request := deployments.EditRequest{Edit: edit, Initiator: console.Initiator()}
	info, err := s.KnownStack(ctx)
	if err != nil {
		return request, err
	}
	request.Stack = info.Stack
	if len(words) > 0 {
		list, err := s.Resources(ctx, info, false)
		if err != nil {
			return request, err
		}
		if request.Resources, err = console.FindURNs(list, words); err != nil {
			return request, err
		}
	}
	request.Secrets, err = s.ExportSecrets(ctx, info.Stack, true)
	return request, err
}

// renameCommand returns deployctl rename.
func renameCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "rename", Usage: "give a resource another name in the state", ArgsUsage: "RESOURCE NAME",
		Description: "RESOURCE is a URN, or a name that only one resource has. Rename it in the program, too: " +
			"otherwise the next up replaces it. The option aliases in the program does both.",
		Flags: console.OnStack(console.YesFlag, console.JSONFlag),
		Action: console.Action(s, func(ctx context.Context, session *console.Session) error {
			words := session.Flags.Args().Slice()
			request, err := editRequest(ctx, session, deployments.EditRename, words[:1])
			if err != nil {
				return err
			}
			request.Name = words[1]
			return editState(ctx, session, request, fmt.Sprintf("Change the state of %s?", request.Stack))
		}),
	}
}

// repairCommand returns deployctl repair.
func repairCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "repair", Usage: "repair the order of the state, and remove references to what is missing",
		Flags: console.OnStack(console.YesFlag, console.JSONFlag),
		Action: console.Action(s, func(ctx context.Context, session *console.Session) error {
			request, err := editRequest(ctx, session, deployments.EditRepair, nil)
			if err != nil {
				return err
			}
			return editState(ctx, session, request, fmt.Sprintf("Change the state of %s?", request.Stack))
		}),
	}
}

// moveCommand returns deployctl move.
func moveCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "move", Usage: "move resources to the state of another stack", ArgsUsage: "RESOURCE...",
		Description: "RESOURCE is a URN, or a name that only one resource has. What is below it moves, too, and " +
			"providers are copied. Both stacks get a new version. If the command is interrupted between the two, do it again.",
		Flags: console.OnStack(console.YesFlag, console.JSONFlag,
			&cli.StringFlag{Name: "source", Usage: "the `STACK` to move from; not set: --stack"},
			&cli.StringFlag{Name: "dest", Usage: "the `STACK` to move to", Required: true},
			&cli.BoolFlag{Name: "include-parents", Usage: "move the parents of the resources, too"},
			&cli.BoolFlag{Name: "force", Usage: "move the last resources of the stack, too (which needs the role " +
				"admin)"}),
		Action: console.Action(s, runMove),
	}
}

func runMove(ctx context.Context, s *console.Session) error {
	if source := s.Flags.String("source"); source != "" {
		if err := s.Flags.Set("stack", source); err != nil {
			return err
		}
	}
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	request := deployments.MoveRequest{From: info.Stack, Parents: s.Flags.Bool("include-parents"),
		Forget: s.Flags.Bool("force"), BaseVersion: &info.Version, Initiator: console.Initiator()}
	if request.To, err = deployments.ParseStackName(s.Flags.String("dest"), info.Stack); err != nil {
		return err
	}
	if err := s.TwoParts(ctx, s.Flags.String("dest"), request.To); err != nil {
		return err
	}
	if _, err := s.Service.Stack(ctx, request.To); deployments.CodeOf(err) == deployments.CodeNotFound {
		return s.UnknownStack(ctx, request.To)
	}
	list, err := s.Resources(ctx, info, false)
	if err != nil {
		return err
	}
	if request.Resources, err = console.FindURNs(list, s.Flags.Args().Slice()); err != nil {
		return err
	}
	if request.FromSecrets, err = s.ExportSecrets(ctx, request.From, true); err != nil {
		return err
	}
	if request.ToSecrets, err = s.ExportSecrets(ctx, request.To, true); err != nil {
		return err
	}
	return move(ctx, s, request)
}

// move shows what would be moved, asks, and moves it.
func move(ctx context.Context, s *console.Session, r deployments.MoveRequest) error {
	if !s.Flags.Bool("yes") {
		r.DryRun = true
		planned, err := s.Service.MoveState(ctx, r)
		if err != nil {
			return err
		}
		if err := s.MustAsk(); err != nil {
			return err
		}
		sayChanges(s, planned.Changes)
		if err := s.Confirm(ctx, fmt.Sprintf("Move these from %s to %s?", r.From, r.To), nil); err != nil {
			return err
		}
		r.DryRun = false
	}
	moved, err := s.Service.MoveState(ctx, r)
	if deployments.CodeOf(err) == deployments.CodeUnconfirmed {
		if err := s.ConfirmForgetting(ctx, err, true); err != nil {
			return err
		}
		r.Forget = true
		moved, err = s.Service.MoveState(ctx, r)
	}
	switch {
	case err != nil:
		return err
	case s.Flags.Bool("json"):
		return s.SayJSON(moved)
	case s.Flags.Bool("yes"):
		sayChanges(s, moved.Changes)
	}
	s.Say("Version %d of %s and version %d of %s have the change.", moved.FromVersion, r.From, moved.ToVersion, r.To)
	return nil
}
