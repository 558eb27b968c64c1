package command

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/urfave/cli/v2"
)

func stackRecoverCommand(s *Surroundings) *cli.Command {
	return &cli.Command{
		Name: "recover", Usage: "end an update whose workflow somebody has closed, keeping all that it did",
		Description: "The next update does that first, so nobody has to. What it had begun and may have happened stands as pending " +
			"operations: the next update looks what became of them. Of a create of which it cannot tell either, deployctl up " +
			"--on-unknown wait and deployctl resolve are the answer.",
		Flags:  onStack(jsonFlag),
		Action: action(s, runStackRecover),
	}
}

func runStackRecover(ctx context.Context, s *session) error {
	stack, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	info, err := s.service.Recover(ctx, stack.Stack)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(info)
	}
	if info.Update.Version == "" {
		s.say("There is nothing to recover: no update has %s.", stack.Stack)
		return nil
	}
	s.say("%s has ended %s: %s\n  version %s, %d resources", info.Update, info.Status, info.Error, info.Update.Version, info.Resources)
	pending, err := s.pending(ctx, info.Update)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		s.say("  may have happened: %s; the next update looks", strings.Join(pending, ", "))
	}
	return nil
}

// pending names the resources on which the state that an update left has pending operations.
func (s *session) pending(ctx context.Context, u deployments.UpdateName) ([]string, error) {
	exported, err := s.service.Export(ctx, u.StackName, u.Number(), deployments.SecretsProvider{}, false)
	if deployments.CodeOf(err) == deployments.CodeNotFound { // it made no version
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var state apitype.DeploymentV3
	if err := json.Unmarshal(exported.Deployment, &state); err != nil {
		return nil, err
	}
	var names []string
	for _, operation := range state.PendingOperations {
		names = append(names, string(operation.Type)+" "+operation.Resource.URN.Name())
	}
	return names, nil
}
