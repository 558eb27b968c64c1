package worker

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
)

// recovery are the activities that look after updates whose workflows were closed from outside.
type recovery struct{ connection *Connection }

// Ended returns once the update's workflow is closed, or not known.
func (r *recovery) Ended(ctx context.Context, u deployments.UpdateName) error {
	for {
		activity.RecordHeartbeat(ctx)
		description, err := r.connection.Client.DescribeWorkflowExecution(ctx, deployments.UpdateWorkflowID(u), "")
		var unknown *serviceerror.NotFound
		switch {
		case errors.As(err, &unknown):
			return nil
		case err == nil && description.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// Recover ends an update in the place of its workflow: what it saved becomes the next checkpoint. Operations that it
// had begun stand as pending; the next update settles them.
func (r *recovery) Recover(ctx context.Context, in deployments.RecoverInput) (deployments.UpdateInfo, error) {
	saves, err := r.connection.Store.LastSave(ctx, in.Update)
	if err != nil {
		return deployments.UpdateInfo{}, err
	}
	request, err := r.connection.Store.Request(ctx, in.Update)
	if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return deployments.UpdateInfo{}, err
	}
	info, err := r.connection.Store.Info(ctx, in.Update)
	if err != nil {
		info = deployments.UpdateInfo{
			Update: in.Update, Kind: request.Kind, Message: request.Message, Initiator: request.Initiator, Started: time.Now().UTC(),
		}
	}
	if !info.Ended.IsZero() {
		return info, nil
	}
	claim, err := r.connection.Store.ClaimOf(ctx, in.Update)
	if err == nil && !request.DryRun {
		written, err := r.connection.Store.Finish(ctx, statestore.Finish{
			Scope: statestore.Scope{Update: in.Update, Base: claim.Base, Secrets: request.Secrets}, Saves: saves,
		})
		if err != nil {
			return info, err
		}
		info.Resources = written.Resources
	}
	info.Status, info.Error, info.Ended = string(in.Status), in.Error, time.Now().UTC()
	if in.Status == "" {
		info.Status = string(engine.StatusFailed)
	}
	if err := r.connection.Store.PutInfo(ctx, info); err != nil {
		return info, err
	}
	return info, closeLog(ctx, r.connection.Store, info, saves)
}
