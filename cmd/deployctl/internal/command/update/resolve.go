package update

import (
	"context"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/stack"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

// ResolveCommand returns deployctl resolve.
func ResolveCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "resolve", Usage: "answer whether a create with an unknown outcome took effect", ArgsUsage: "RESOURCE",
		Description: "RESOURCE is a URN, or the name of the only such create that has it. Without a running update, it " +
			"runs one that settles what is pending in the stack's state, with this answer.\nThe exit code is 4 if the running " +
			"update does not wait for this create, and 2 if nothing of it is pending.",
		Flags: console.OnStack(
			&cli.StringFlag{Name: "created", Usage: "the resource exists and has this `ID`"},
			&cli.BoolFlag{Name: "absent", Usage: "the resource does not exist"},
			&cli.StringFlag{Name: "update", Usage: "the waiting `UPDATE`; not set: the stack's running update"}),
		Action: console.Action(s, runResolve),
	}
}

func runResolve(ctx context.Context, s *console.Session) error {
	id, absent := s.Flags.String("created"), s.Flags.Bool("absent")
	if (id == "") == !absent {
		return deployments.Errorf(deployments.CodeInvalid, "pass either --created ID or --absent")
	}
	word := s.Flags.Args().First()
	if s.Flags.String("update") == "" {
		stack, err := s.ConnectedStack(ctx)
		if err != nil {
			return err
		}
		info, err := s.Service.Stack(ctx, stack)
		if err != nil {
			return err
		}
		if info.Active == nil && len(info.Queued) == 0 {
			return settle(ctx, s, stack, word, id)
		}
	}
	u, err := updateOf(ctx, s, s.Flags.String("update"), false)
	if err != nil {
		return err
	}
	create, err := undecided(ctx, s, u.Update.StackName, word)
	if err != nil {
		return err
	}
	if err := s.Service.Resolve(ctx, u.Update, create, id); err != nil {
		return err
	}
	s.Say("%s continues.", u.Update)
	return nil
}

// undecided returns the URN of the only create that has a name, of those that wait for an answer or are pending. A URN
// stands for itself.
func undecided(ctx context.Context, s *console.Session, of deployments.StackName, name string) (string, error) {
	if _, err := urn.Parse(name); err == nil {
		return name, nil
	}
	info, err := s.Service.Stack(ctx, of)
	if err != nil {
		return "", err
	}
	var all []string
	if info.Active != nil {
		all = slices.Clone(info.Active.Waiting)
	}
	pending, err := stack.PendingIn(ctx, s, of, 0)
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
	hint := console.DidYouMean(name, names)
	if hint == "" && len(names) > 0 {
		hint = "; what does is " + strings.Join(names, ", ")
	}
	return "", deployments.Errorf(deployments.CodeNotFound, "nothing of %s that is named %q waits for an answer or is "+
		"pending%s", of, name, hint)
}

// settle runs an update that settles what is pending in the stack's state, with a person's answer.
func settle(ctx context.Context, s *console.Session, of deployments.StackName, word, id string) error {
	create, err := undecided(ctx, s, of, word)
	if err != nil {
		return err
	}
	answer := engine.Resolved{URN: urn.URN(create), ID: id}
	left, err := stack.PendingIn(ctx, s, of, 0)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(left, func(o apitype.OperationV2) bool { return o.Resource.URN == answer.URN }) {
		return deployments.Errorf(deployments.CodeNotFound, "no update of %s waits for an answer, and nothing of %s is "+
			"pending in its state", of, answer.URN)
	}
	return submitAnswer(ctx, s, of, answer)
}

// submitAnswer lets a refresh settle what is pending, and follows it.
func submitAnswer(ctx context.Context, s *console.Session, stack deployments.StackName, answer engine.Resolved) error {
	r := deployments.UpdateRequest{
		Stack: stack, Kind: engine.KindRefresh, RequestID: newRequestID(), Initiator: console.Initiator(),
		OnBusy: deployments.OnBusyQueue, Message: "Resolves " + answer.URN.Name(),
		Settle: &engine.Settling{Answers: []engine.Resolved{answer}},
	}
	if s.NeedProject() == nil { // elsewhere there are neither rules, nor a passphrase, nor plugins of the project
		if err := fillRequest(ctx, s, &r, nil); err != nil {
			return err
		}
	} else if s.Service.Embedded {
		r.Environment = programEnvironment(s.Environ)
	}
	accepted, err := submit(ctx, s, r)
	if err != nil {
		return err
	}
	return follow(ctx, s, accepted, r.Kind, nil)
}
