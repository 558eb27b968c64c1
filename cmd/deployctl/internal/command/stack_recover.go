package command

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/urfave/cli/v2"
)

func stackRecoverCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "recover", Usage: "finish an update whose workflow was terminated in Temporal, keeping all that it did",
		Description: "The next update does this too, so the command is only needed if you do not want to update now. " +
			"Steps with an unknown " +
			"outcome stay in the state as pending operations, which the next update settles. If it cannot settle a " +
			"create, run deployctl resolve.\nIf nothing can recover the update, an admin can end it with --discard: the stack " +
			"keeps the state from before it. Save what the update has written first: deployctl stack export --raw FILE." +
			"\nThe exit code is 4 while an update runs.",
		Flags: onStack(jsonFlag, yesFlag, &cli.BoolFlag{Name: "discard", Usage: "if the update cannot be recovered, give " +
			"up what it did; needs the role admin"}),
		Action: action(s, runStackRecover),
	}
}

func runStackRecover(ctx context.Context, s *session) error {
	discard := s.flags.Bool("discard")
	if discard {
		if err := s.mustAsk(); err != nil {
			return err
		}
	}
	stack, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	if discard && !s.flags.Bool("yes") {
		if err := s.confirmName(ctx, stack.Stack, "This gives up what the active update of stack %s did, if nothing can "+
			"recover it; `deployctl stack export --raw FILE` keeps what it has written."); err != nil {
			return err
		}
	}
	info, err := s.service.Recover(ctx, deployments.RecoverRequest{Stack: stack.Stack, Discard: discard})
	switch code := deployments.CodeOf(err); {
	case !discard && (code == deployments.CodeFormat || code == deployments.CodeInternal):
		return deployments.Errorf(code, "%w. If the cause cannot be repaired, an admin can give up what the update did: "+
			"`deployctl stack recover --discard`, after `deployctl stack export --raw FILE`, which keeps what it has "+
			"written", err)
	case err != nil:
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(info)
	}
	if info.Update.Version == "" {
		s.say("There is nothing to recover: %s has no active update.", stack.Stack)
		return nil
	}
	s.say("%s has ended %s: %s\n  version %s, %s", info.Update, info.Status, info.Error, info.Update.Version,
		counted(info.Resources, "resource", "resources"))
	pending, err := s.pending(ctx, info.Update)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		s.say("  pending operations: %s; the next update settles them", strings.Join(pending, ", "))
	}
	return nil
}

// pending names the resources with pending operations in the state that an update left.
func (s *session) pending(ctx context.Context, u deployments.UpdateName) ([]string, error) {
	operations, err := s.pendingIn(ctx, u.StackName, u.Number())
	var names []string
	for _, operation := range operations {
		names = append(names, string(operation.Type)+" "+operation.Resource.URN.Name())
	}
	return names, err
}

// pendingIn returns the pending operations of a version of a stack; 0 stands for the last one.
func (s *session) pendingIn(
	ctx context.Context, stack deployments.StackName, version int,
) ([]apitype.OperationV2, error) {
	exported, err := s.service.Export(ctx, stack, version, deployments.SecretsProvider{}, false)
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
