package command

import (
	"context"
	"errors"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

func resolveCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "resolve", Usage: "answer whether a create with an unknown outcome took effect", ArgsUsage: "URN",
		Description: "Without a running update, it runs one that settles what is pending in the stack's state, with this " +
			"answer.\nThe exit code is 4 if the running update does not wait for this URN, and 2 if nothing of it is pending.",
		Flags: onStack(
			&cli.StringFlag{Name: "created", Usage: "the resource exists and has this `ID`"},
			&cli.BoolFlag{Name: "absent", Usage: "the resource does not exist"},
			&cli.StringFlag{Name: "update", Usage: "the waiting `UPDATE`; not set: the stack's running update"}),
		Action: action(s, runResolve),
	}
}

func runResolve(ctx context.Context, s *session) error {
	id, absent := s.flags.String("created"), s.flags.Bool("absent")
	if (id == "") == !absent {
		return deployments.Errorf(deployments.CodeInvalid, "pass either --created ID or --absent")
	}
	name := s.flags.Args().First()
	if _, err := urn.Parse(name); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%q is not a URN; the update prints the URN that it waits "+
			"for", name)
	}
	if s.flags.String("update") == "" {
		stack, err := s.connectedStack(ctx)
		if err != nil {
			return err
		}
		if info, err := s.service.Stack(ctx, stack); err != nil || info.Active == nil && len(info.Queued) == 0 {
			return errors.Join(err, s.settle(ctx, stack, engine.Resolved{URN: urn.URN(name), ID: id}))
		}
	}
	u, err := s.updateOf(ctx, s.flags.String("update"), false)
	if err != nil {
		return err
	}
	if err := s.service.Resolve(ctx, u.Update, name, id); err != nil {
		return err
	}
	s.say("%s continues.", u.Update)
	return nil
}

// settle runs an update that settles what is pending in the stack's state, with a person's answer.
func (s *session) settle(ctx context.Context, stack deployments.StackName, answer engine.Resolved) error {
	left, err := s.pendingIn(ctx, stack, 0)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(left, func(o apitype.OperationV2) bool { return o.Resource.URN == answer.URN }) {
		return deployments.Errorf(deployments.CodeNotFound, "no update of %s waits for an answer, and nothing of %s is "+
			"pending in its state", stack, answer.URN)
	}
	return s.submitAnswer(ctx, stack, answer)
}

// submitAnswer lets a refresh settle what is pending, and follows it.
func (s *session) submitAnswer(ctx context.Context, stack deployments.StackName, answer engine.Resolved) error {
	r := deployments.UpdateRequest{
		Stack: stack, Kind: engine.KindRefresh, RequestID: newRequestID(), Initiator: initiator(),
		OnBusy: deployments.OnBusyQueue, Message: "Resolves " + answer.URN.Name(),
		Settle: &engine.Settling{Answers: []engine.Resolved{answer}},
	}
	if s.needProject() == nil { // elsewhere there are neither rules nor a passphrase
		if err := s.configure(ctx, &r); err != nil {
			return err
		}
	}
	if s.service.Embedded {
		r.Environment = programEnvironment(s.Environ)
	}
	accepted, err := s.submit(ctx, r)
	if err != nil {
		return err
	}
	return s.follow(ctx, accepted, r.Kind, nil)
}
