package command

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// Flags of the commands that change a state.
var (
	allResourcesFlag = &cli.BoolFlag{Name: "all", Usage: "change every resource of the stack"}
	copyFlag         = &cli.StringFlag{Name: "id", Usage: "of several copies with one URN, the one with this `ID`"}
)

func stateDeleteCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "delete", Aliases: []string{"rm"}, ArgsUsage: "[RESOURCE...]",
		Usage: "delete resources from the state; they go on existing, and nothing manages them any more",
		Description: "RESOURCE is a URN, or a name that only one resource has. A resource on which others depend is " +
			"not deleted without them.",
		Flags: onStack(yesFlag, jsonFlag, allResourcesFlag, copyFlag,
			&cli.BoolFlag{Name: "force", Usage: "delete protected resources, too, and the last ones of the stack " +
				"(which needs the role admin)"},
			&cli.BoolFlag{Name: "target-dependents", Usage: "delete what depends on the resources, too"}),
		Action: action(s, func(ctx context.Context, session *session) error {
			return session.editResources(ctx, deployments.EditDelete,
				"Delete these from the state of %s? The real resources stay.")
		}),
	}
}

func stateProtectCommand(s *Env) *cli.Command {
	return markCommand(s, deployments.EditProtect, "protect resources: no update deletes or replaces them", "")
}

func stateUnprotectCommand(s *Env) *cli.Command {
	return markCommand(s, deployments.EditUnprotect, "let updates delete and replace protected resources again",
		"Remove the protection of these resources of %s?")
}

func stateTaintCommand(s *Env) *cli.Command {
	return markCommand(s, deployments.EditTaint, "make the next up replace resources", "")
}

func stateUntaintCommand(s *Env) *cli.Command {
	return markCommand(s, deployments.EditUntaint, "let the next up keep tainted resources", "")
}

// markCommand returns a command that sets or clears a mark. A question, if there is one, is asked first.
func markCommand(s *Env, edit deployments.EditKind, usage, question string) *cli.Command {
	return &cli.Command{
		Name: string(edit), Usage: usage, ArgsUsage: "[RESOURCE...]",
		Description: "RESOURCE is a URN, or a name that only one resource has.",
		Flags:       onStack(yesFlag, jsonFlag, allResourcesFlag, copyFlag),
		Action: action(s, func(ctx context.Context, session *session) error {
			return session.editResources(ctx, edit, question)
		}),
	}
}

// editResources edits the resources that the arguments name, or all.
func (s *session) editResources(ctx context.Context, edit deployments.EditKind, question string) error {
	words, all := s.flags.Args().Slice(), s.flags.Bool("all")
	if len(words) > 0 == all {
		return deployments.Errorf(deployments.CodeInvalid, "name the resources, or pass --all; deployctl state ls "+
			"lists them")
	}
	request, err := s.editRequest(ctx, edit, words)
	if err != nil {
		return err
	}
	request.All, request.ID = all, s.flags.String("id")
	request.Force, request.Dependents = s.flags.Bool("force"), s.flags.Bool("target-dependents")
	if question != "" {
		question = fmt.Sprintf(question, request.Stack)
	}
	return s.edit(ctx, request, question)
}

// editRequest returns an edit of the resources that words name, in the newest state.
func (s *session) editRequest(
	ctx context.Context, edit deployments.EditKind, words []string,
) (deployments.EditRequest, error) {
	request := deployments.EditRequest{Edit: edit, Initiator: initiator()}
	info, err := s.knownStack(ctx)
	if err != nil {
		return request, err
	}
	request.Stack = info.Stack
	if len(words) > 0 {
		list, err := s.resources(ctx, info, false)
		if err != nil {
			return request, err
		}
		if request.Resources, err = findURNs(list, words); err != nil {
			return request, err
		}
	}
	request.Secrets, err = s.exportSecrets(ctx, info.Stack, true)
	return request, err
}

func stateRenameCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "rename", Usage: "give a resource another name in the state", ArgsUsage: "RESOURCE NAME",
		Description: "RESOURCE is a URN, or a name that only one resource has. Rename it in the program, too: " +
			"otherwise the next up replaces it. The option aliases in the program does both.",
		Flags: onStack(yesFlag, jsonFlag),
		Action: action(s, func(ctx context.Context, session *session) error {
			words := session.flags.Args().Slice()
			request, err := session.editRequest(ctx, deployments.EditRename, words[:1])
			if err != nil {
				return err
			}
			request.Name = words[1]
			return session.edit(ctx, request, fmt.Sprintf("Change the state of %s?", request.Stack))
		}),
	}
}

func stateRepairCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "repair", Usage: "repair the order of the state, and remove references to what is missing",
		Flags: onStack(yesFlag, jsonFlag),
		Action: action(s, func(ctx context.Context, session *session) error {
			request, err := session.editRequest(ctx, deployments.EditRepair, nil)
			if err != nil {
				return err
			}
			return session.edit(ctx, request, fmt.Sprintf("Change the state of %s?", request.Stack))
		}),
	}
}

func stateMoveCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "move", Usage: "move resources to the state of another stack", ArgsUsage: "RESOURCE...",
		Description: "RESOURCE is a URN, or a name that only one resource has. What is below it moves, too, and " +
			"providers are copied. Both stacks get a new version. If the command is interrupted between the two, do it again.",
		Flags: onStack(yesFlag, jsonFlag,
			&cli.StringFlag{Name: "source", Usage: "the `STACK` to move from; not set: --stack"},
			&cli.StringFlag{Name: "dest", Usage: "the `STACK` to move to", Required: true},
			&cli.BoolFlag{Name: "include-parents", Usage: "move the parents of the resources, too"},
			&cli.BoolFlag{Name: "force", Usage: "move the last resources of the stack, too (which needs the role " +
				"admin)"}),
		Action: action(s, runStateMove),
	}
}

func runStateMove(ctx context.Context, s *session) error {
	if source := s.flags.String("source"); source != "" {
		if err := s.flags.Set("stack", source); err != nil {
			return err
		}
	}
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	request := deployments.MoveRequest{From: info.Stack, Parents: s.flags.Bool("include-parents"),
		Forget: s.flags.Bool("force"), BaseVersion: &info.Version, Initiator: initiator()}
	if request.To, err = deployments.ParseStackName(s.flags.String("dest"), info.Stack); err != nil {
		return err
	}
	if err := s.twoParts(ctx, s.flags.String("dest"), request.To); err != nil {
		return err
	}
	if _, err := s.service.Stack(ctx, request.To); deployments.CodeOf(err) == deployments.CodeNotFound {
		return s.unknownStack(ctx, request.To)
	}
	list, err := s.resources(ctx, info, false)
	if err != nil {
		return err
	}
	if request.Resources, err = findURNs(list, s.flags.Args().Slice()); err != nil {
		return err
	}
	if request.FromSecrets, err = s.exportSecrets(ctx, request.From, true); err != nil {
		return err
	}
	if request.ToSecrets, err = s.exportSecrets(ctx, request.To, true); err != nil {
		return err
	}
	return s.move(ctx, request)
}

// move shows what would be moved, asks, and moves it.
func (s *session) move(ctx context.Context, r deployments.MoveRequest) error {
	if !s.flags.Bool("yes") {
		if err := s.mustAsk(); err != nil {
			return err
		}
		r.DryRun = true
		planned, err := s.service.MoveState(ctx, r)
		if err != nil {
			return err
		}
		s.sayChanges(planned.Changes)
		if err := s.confirm(ctx, fmt.Sprintf("Move these from %s to %s?", r.From, r.To), nil); err != nil {
			return err
		}
		r.DryRun = false
	}
	moved, err := s.service.MoveState(ctx, r)
	if deployments.CodeOf(err) == deployments.CodeUnconfirmed {
		if err := s.confirmForgetting(ctx, err, true); err != nil {
			return err
		}
		r.Forget = true
		moved, err = s.service.MoveState(ctx, r)
	}
	switch {
	case err != nil:
		return err
	case s.flags.Bool("json"):
		return s.sayJSON(moved)
	case s.flags.Bool("yes"):
		s.sayChanges(moved.Changes)
	}
	s.say("Version %d of %s and version %d of %s have the change.", moved.FromVersion, r.From, moved.ToVersion, r.To)
	return nil
}
