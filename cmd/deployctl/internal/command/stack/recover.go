package stack

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/urfave/cli/v2"
)

// recoverCommand returns deployctl recover.
func recoverCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "recover", Usage: "finish an update whose workflow was terminated in Temporal, keeping all that it did",
		Description: "The next update does this too, so the command is only needed if you do not want to update now. " +
			"Steps with an unknown " +
			"outcome stay in the state as pending operations, which the next update settles. If it cannot settle a " +
			"create, run deployctl resolve.\nIf nothing can recover the update, an admin can end it with --discard: the stack " +
			"keeps the state from before it. Save what the update has written first: deployctl stack export --raw FILE." +
			"\nThe exit code is 4 while an update runs.",
		Flags: console.OnStack(console.JSONFlag, console.YesFlag, &cli.BoolFlag{Name: "discard",
			Usage: "if the update cannot be recovered, give " +
				"up what it did; needs the role admin"}),
		Action: console.Action(s, runRecover),
	}
}

func runRecover(ctx context.Context, s *console.Session) error {
	discard := s.Flags.Bool("discard")
	stack, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	if discard && !s.Flags.Bool("yes") {
		if err := s.MustAsk(); err != nil {
			return err
		}
		if err := confirmName(ctx, s, stack.Stack, "This gives up what the active update of stack %s did, if nothing can "+
			"recover it; `deployctl stack export --raw FILE` keeps what it has written."); err != nil {
			return err
		}
	}
	info, err := s.Service.Recover(ctx, deployments.RecoverRequest{Stack: stack.Stack, Discard: discard})
	switch code := deployments.CodeOf(err); {
	case !discard && (code == deployments.CodeFormat || code == deployments.CodeInternal):
		return deployments.Errorf(code, "%w. If the cause cannot be repaired, an admin can give up what the update did: "+
			"`deployctl stack recover --discard`, after `deployctl stack export --raw FILE`, which keeps what it has "+
			"written", err)
	case err != nil:
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(info)
	}
	if info.Update.Version == "" {
		s.Say("There is nothing to recover: %s has no active update.", stack.Stack)
		return nil
	}
	s.Say("%s has ended %s: %s\n  version %s, %s", info.Update, info.Status, info.Error, info.Update.Version,
		console.Counted(info.Resources, "resource", "resources"))
	pending, err := pendingNames(ctx, s, info.Update)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		s.Say("  pending operations: %s; the next update settles them", strings.Join(pending, ", "))
	}
	return nil
}

// pendingNames names the resources with pending operations in the state that an update left.
func pendingNames(ctx context.Context, s *console.Session, u deployments.UpdateName) ([]string, error) {
	operations, err := PendingIn(ctx, s, u.StackName, u.Number())
	var names []string
	for _, operation := range operations {
		names = append(names, string(operation.Type)+" "+operation.Resource.URN.Name())
	}
	return names, err
}

// PendingIn returns the pending operations of a version of a stack; 0 stands for the last one.
func PendingIn(
	ctx context.Context, s *console.Session, stack deployments.StackName, version int,
) ([]apitype.OperationV2, error) {
	exported, err := s.Service.Export(ctx, stack, version, deployments.SecretsProvider{}, false)
	if deployments.CodeOf(err) == deployments.CodeNotFound { // the update made no version
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var state apitype.DeploymentV3
	if len(exported.Deployment) == 0 {
		return nil, nil
	}
	err = json.Unmarshal(exported.Deployment, &state)
	return state.PendingOperations, err
}
