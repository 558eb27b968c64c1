package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// deployment is a Deployment workflow.
type deployment struct {
	in  deployments.DeploymentInput
	out deployments.DeploymentOutput
}

// Deployment runs an operation on a stack with a program from a git repository: it waits for its turn among the
// deployments of the stack, gets the program, and submits the operation's update to the stack's queue. It ends when the
// update has ended, and the stack is removed if that was asked for. How it ended is in its result and in the store; its
// error is only that of the removal.
func (w *Workflows) Deployment(
	ctx workflow.Context, in deployments.DeploymentInput,
) (deployments.DeploymentOutput, error) {
	ctx = withNames(ctx)
	d := &deployment{in: in}
	d.out.Status = deployments.DeploymentSucceeded
	if err := d.run(ctx); err != nil {
		d.out.Status, d.out.Error = deployments.DeploymentFailed, messageOf(err)
		if temporal.IsCanceledError(err) {
			d.out.Error = "it was cancelled"
		}
	}
	after, _ := workflow.NewDisconnectedContext(ctx)
	end := deployments.EndDeploymentInput{Name: in.Name, DeploymentOutput: d.out}
	var ended deployments.EndedDeployment
	if err := execute(onLong(after, "record how it ended"), deployments.ActivityEndDeployment, end).Get(after,
		&ended); err != nil {
		return d.out, err
	}
	if err := setResult(after, string(d.out.Status)); err != nil || !ended.RemovesStack {
		return d.out, err
	}
	if err := workflow.Sleep(after, removeAfter); err != nil {
		return d.out, err
	}
	return d.out, execute(onLong(after, "remove the stack"), deployments.ActivityRemoveDestroyedStack,
		in.Name).Get(after, nil)
}

func (d *deployment) run(ctx workflow.Context) error {
	waiting := workflow.WithWaitForCancellation(onRemote(ctx, "wait for its turn", short), true)
	var turn deployments.DeploymentTurn
	err := execute(waiting, deployments.ActivityAwaitTurn, d.in.Name).Get(ctx, &turn)
	switch {
	case err != nil && ctx.Err() != nil: // also when a look that found no turn was the last
		turn.Skipped = "it was cancelled before its turn"
	case err != nil:
		return err
	}
	if turn.Skipped != "" {
		d.out.Status, d.out.Error = deployments.DeploymentSkipped, turn.Skipped
		return nil
	}
	var prepared deployments.PreparedDeployment
	preparing := onRemote(ctx, "get the program", longestActivity)
	if err := execute(preparing, deployments.ActivityPrepareDeployment, d.in.Name).Get(ctx,
		&prepared); err != nil {
		return err
	}
	check, err := d.update(ctx, prepared.Request)
	if err != nil || !prepared.Drift {
		return err
	}
	var found deployments.DriftSummary
	report := deployments.DriftReportInput{Check: check}
	if err := execute(onShared(ctx, "report the drift"), deployments.ActivityReportDrift, report).Get(
		ctx, &found); err != nil || found.Drifted == 0 || !prepared.Remediate {
		return err
	}
	remediation := prepared.Request
	remediation.Kind, remediation.DryRun, remediation.Refresh = engine.KindUp, false, true
	remediation.RequestID += "-remedy"
	remedy, err := d.update(ctx, remediation)
	if err != nil {
		return err
	}
	report.Remediation = &remedy
	return execute(onShared(ctx, "report the drift"), deployments.ActivityReportDrift, report).Get(ctx,
		nil)
}

// update submits an update and follows it to its end. If the deployment is cancelled, so is the update.
func (d *deployment) update(ctx workflow.Context, r deployments.UpdateRequest) (deployments.UpdateName, error) {
	after, _ := workflow.NewDisconnectedContext(ctx)
	submit := deployments.SubmitDeploymentInput{Name: d.in.Name, Request: r}
	var u deployments.UpdateName
	if err := ctx.Err(); err != nil {
		return u, err
	}
	if err := execute(onShared(after, "submit the update"), deployments.ActivitySubmitDeployment, submit).Get(after,
		&u); err != nil {
		return u, err
	}
	d.out.Updates = append(d.out.Updates, u)
	follow := deployments.FollowDeploymentInput{Name: d.in.Name, Update: u}
	options := func(ctx workflow.Context) workflow.Context {
		return onRemote(ctx, "wait for update "+u.Version, longestWait)
	}
	var info deployments.UpdateInfo
	err := execute(options(ctx), deployments.ActivityFollowDeployment, follow).Get(ctx, &info)
	if err != nil && ctx.Err() != nil {
		follow.Cancel = true
		err = execute(options(after), deployments.ActivityFollowDeployment, follow).Get(after, &info)
	}
	if err == nil && info.Status != string(engine.StatusSucceeded) {
		err = unsuccessful(info)
	}
	return u, err
}
