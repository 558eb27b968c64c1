// Package runclient speaks with Run workflows over Temporal.
package runclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// New gives an runlink.Runs over a Temporal client.
func New(c client.Client) runlink.Runs { return runs{c} }

type runs struct{ client client.Client }

// Signal delivers messages.
func (r runs) Signal(ctx context.Context, u deployments.UpdateName, m deployments.Messages) error {
	return permanent(r.client.SignalWorkflow(ctx, deployments.RunWorkflowID(u), "", deployments.SignalMessages, m))
}

// Poll waits for replies. Each call is an Update of its own: one that a run accepted before it continued as new fails
// for good.
func (r runs) Poll(ctx context.Context, u deployments.UpdateName, p deployments.Poll) (deployments.Replies, error) {
	var replies deployments.Replies
	handle, err := r.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: deployments.RunWorkflowID(u), UpdateName: deployments.UpdatePoll, Args: []any{p},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return replies, permanent(err)
	}
	err = handle.Get(ctx, &replies)
	return replies, permanent(err)
}

// permanent tells a closed workflow and a refused message from everything that may pass.
func permanent(err error) error {
	var gone *serviceerror.NotFound
	var refused *serviceerror.InvalidArgument
	switch {
	case errors.As(err, &gone):
		return fmt.Errorf("%w: %s", runlink.ErrRunEnded, gone.Message)
	case errors.As(err, &refused):
		return fmt.Errorf("%w: %s", runlink.ErrRefused, refused.Message)
	}
	return err
}
