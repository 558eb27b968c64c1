package command

import (
	"context"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

func resolveCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "resolve", Usage: "answer whether a create with an unknown outcome took effect", ArgsUsage: "RESOURCE",
		Description: "RESOURCE is a URN, or the name of the only such create that has it. Without a running update, it " +
			"runs one that settles what is pending in the stack's state, with this answer.\nThe exit code is 4 if the running " +
			"update does not wait for this create, and 2 if nothing of it is pending.",
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
	word := s.flags.Args().First()
	if s.flags.String("update") == "" {
		stack, err := s.connectedStack(ctx)
		if err != nil {
			return err
		}
		info, err := s.service.Stack(ctx, stack)
		if err != nil {
			return err
		}
		if info.Active == nil && len(info.Queued) == 0 {
			return s.settle(ctx, stack, word, id)
		}
	}
	u, err := s.updateOf(ctx, s.flags.String("update"), false)
	if err != nil {
		return err
	}
	create, err := s.undecided(ctx, u.Update.StackName, word)
	if err != nil {
		return err
	}
	if err := s.service.Resolve(ctx, u.Update, create, id); err != nil {
		return err
	}
	s.say("%s continues.", u.Update)
	return nil
}

// undecided returns the URN of the only create that has a name, of those that wait for an answer or are pending. A URN
// stands for itself.
func (s *session) undecided(ctx context.Context, stack deployments.StackName, name string) (string, error) {
	if _, err := urn.Parse(name); err == nil {
		return name, nil
	}
	info, err := s.service.Stack(ctx, stack)
	if err != nil {
		return "", err
	}
	var all []string
	if info.Active != nil {
		all = slices.Clone(info.Active.Waiting)
	}
	pending, err := s.pendingIn(ctx, stack, 0)
	if err != nil {
		return "", err
	}
	for _, o := range pending {
		all = append(all, string(o.Resource.URN))
	}
	slices.Sort(all)
	var named, names []string
	for _, u := range slices.Compact(all) {
		names = append(names, urn.URN(u).Name())
		if urn.URN(u).Name() == name {
			named = append(named, u)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) > 1:
		return "", deployments.Errorf(deployments.CodeInvalid, "%d resources are named %s; write the URN of the one that "+
			"you mean:\n  %s", len(named), name, strings.Join(named, "\n  "))
	}
	hint := didYouMean(name, names)
	if hint == "" && len(names) > 0 {
		hint = "; what does is " + strings.Join(names, ", ")
	}
	return "", deployments.Errorf(deployments.CodeNotFound, "nothing of %s that is named %q waits for an answer or is "+
		"pending%s", stack, name, hint)
}

// settle runs an update that settles what is pending in the stack's state, with a person's answer.
func (s *session) settle(ctx context.Context, stack deployments.StackName, word, id string) error {
	create, err := s.undecided(ctx, stack, word)
	if err != nil {
		return err
	}
	answer := engine.Resolved{URN: urn.URN(create), ID: id}
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
