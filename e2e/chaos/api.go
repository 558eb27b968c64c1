package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
)

// dial connects to the world's API as its commands do.
func (w *world) dial() (*client.Client, error) {
	o := client.Options{Patience: patience}
	for _, variable := range w.Env {
		name, value, _ := strings.Cut(variable, "=")
		switch name {
		case "DEPLOYCTL_SERVER":
			o.Address = value
		case "DEPLOYCTL_TOKEN":
			o.Token = value
		}
	}
	return client.Dial(o)
}

// name is the stack's.
func (s *stage) name() deployments.StackName { return s.update().StackName }

// version names an update of the stack.
func (s *stage) version(n int) deployments.UpdateName {
	return deployments.UpdateName{StackName: s.name(), Version: strconv.Itoa(n)}
}

// accepted waits until an update of the stack runs or waits in its queue.
func (s *stage) accepted(ctx context.Context, api *client.Client, u deployments.UpdateName) error {
	return eventually(ctx, fmt.Sprintf("update %s is accepted", u.Version), func() (bool, error) {
		info, err := api.Stack(ctx, s.name())
		if err != nil {
			return false, err
		}
		for _, waiting := range info.Queued {
			if waiting.Update == u {
				return true, nil
			}
		}
		return info.Active != nil && info.Active.Update == u || info.Version >= u.Number(), nil
	})
}

// pendingOperations are those that the stack's state holds.
func (s *stage) pendingOperations(ctx context.Context, api *client.Client) (int, error) {
	exported, err := api.Export(ctx, s.name(), 0, ownSecrets, false)
	if err != nil {
		return 0, err
	}
	var state apitype.DeploymentV3
	err = json.Unmarshal(exported.Deployment, &state)
	return len(state.PendingOperations), err
}

// ownSecrets are those of a stack that says nothing else.
var ownSecrets = deployments.SecretsProvider{Type: "service"}

// endedWith waits for the command's end, which must be with an exit code.
func (c *command) endedWith(ctx context.Context, code int) error {
	err := c.wait(ctx)
	if ctx.Err() != nil {
		return err
	}
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		return fmt.Errorf("deployctl %s ends with %d, not %d; it says\n%s", strings.Join(c.cmd.Args[1:], " "), got,
			code, c.end())
	}
	return nil
}

// plus adds counts up.
func (c counts) plus(d counts) counts {
	return counts{c.Duplicates + d.Duplicates, c.Leaks + d.Leaks, c.Commands + d.Commands}
}
