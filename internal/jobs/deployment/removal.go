package deployment

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// headerRemoval is the header, in the log, of the removal of a stack that was destroyed.
const headerRemoval = "Remove the stack"

// RemoveDestroyedStack removes the stack that a deployment has destroyed, if its end says so. It may be repeated: a
// stack that was created under the name since then stays. A removal that is refused makes the deployment a failed one,
// which says why.
func (a *Activities) RemoveDestroyedStack(ctx context.Context, n deployments.DeploymentName) error {
	defer heartbeat.Beat(ctx)()
	head, err := a.Service.Head(ctx, n.StackName)
	if err != nil {
		return failure.Of(unlessAbsent(err))
	}
	d, err := a.Store.Jobs.Deployment(ctx, n)
	if err != nil {
		return failure.Of(unlessAbsent(err))
	}
	if d.Removes == "" { // it was refused before, and maybe not told
		return failure.Of(a.Service.TellDeployment(ctx, d.Deployment))
	}
	if d.Removes != head.ID {
		return nil
	}
	if err = a.permit(ctx, d); err == nil {
		err = unlessAbsent(a.Service.RemoveStack(ctx, n.StackName, false))
	}
	refused := (*temporal.ApplicationError)(nil)
	if errors.As(failure.Of(err), &refused) && refused.NonRetryable() {
		err = unlessAbsent(a.refuseRemoval(ctx, n, err))
	}
	return failure.Of(err)
}

// refuseRemoval records why the stack that a deployment has destroyed stays, and tells webhooks.
func (a *Activities) refuseRemoval(ctx context.Context, n deployments.DeploymentName, why error) error {
	now, text := time.Now().UTC(), "the stack is destroyed, but not removed: "+why.Error()
	err := a.Store.Jobs.PutDeploymentLog(ctx, jobs.LogPart{Name: n, Step: stepRemoval}, []apitype.DeploymentLogLine{
		{Timestamp: now, Header: headerRemoval}, {Timestamp: now, Line: "The deployment has failed: " + text + "\n"},
		{Timestamp: now, Line: "`pulumi stack rm` removes the stack.\n"},
	})
	if err != nil {
		return err
	}
	d, err := a.Store.Jobs.ChangeDeployment(ctx, n, func(d *jobs.Deployment) error {
		d.Status, d.Error, d.Removes = deployments.DeploymentFailed, text, ""
		d.Steps = append(d.Steps, deployments.DeploymentStep{Name: headerRemoval, Status: deployments.DeploymentFailed,
			Started: now, Changed: now})
		return nil
	})
	if err != nil {
		return err
	}
	return a.Service.TellDeployment(ctx, d.Deployment)
}

// unlessAbsent returns an error unless it says that something does not exist: nothing is left to do for a stack that is
// gone.
func unlessAbsent(err error) error {
	if err != nil && deployments.CodeOf(err) == deployments.CodeNotFound {
		return nil
	}
	return err
}
