package deployment

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/statestore/jobs"
)

// startedWithin is how long the start of a deployment's workflow may take after it was recorded.
const startedWithin = time.Minute

// nextLook and laterLook limit the pause until a deployment looks for its turn again: if it is the next one, and if
// others are before it.
const nextLook, laterLook = 5 * time.Second, 30 * time.Second

// turn is what a deployment finds when it looks for its turn.
type turn struct {
	why     string        // it waits; empty: it has its turn, or is skipped
	skipped string        // why it is skipped; empty: it is not
	look    time.Duration // how long it waits until it looks again, at most
}

// AwaitTurn begins a deployment that has its turn: every one of the stack with a lower number has ended, and the
// stack's deployments are not paused. One that was cancelled, or that a later one replaces, is skipped. Any other is
// postponed: the server has it look again later, so that it takes no place of a worker until then. Webhooks are told
// that a deployment is queued, and that it has started.
func (a *Activities) AwaitTurn(ctx context.Context, n deployments.DeploymentName) (deployments.DeploymentTurn, error) {
	none := deployments.DeploymentTurn{}
	var told string // why it waits, as the last look has said
	if activity.HasHeartbeatDetails(ctx) {
		_ = activity.GetHeartbeatDetails(ctx, &told) // else it is said again
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beat(ctx, told)
	found, err := a.look(ctx, n)
	switch {
	case err != nil:
		return none, failure.Of(err)
	case found.skipped != "":
		return deployments.DeploymentTurn{Skipped: found.skipped}, nil
	case found.why == "":
		return none, failure.Of(a.start(ctx, n))
	}
	if found.why != told {
		log := a.log(ctx, n, stepTurn, nil)
		log.line(found.why)
		log.close()
	}
	cancel()
	activity.RecordHeartbeat(context.WithoutCancel(ctx), found.why)
	return none, failure.Later(ctx, found.why, found.look)
}

// start records that a deployment has begun.
func (a *Activities) start(ctx context.Context, n deployments.DeploymentName) error {
	d, err := a.change(ctx, n, func(d *jobs.Deployment) {
		d.Status = deployments.DeploymentRunning
		if d.Begun.IsZero() {
			d.Begun, d.Run = time.Now().UTC(), workflowRun(ctx)
		}
	})
	if err != nil {
		return err
	}
	return a.Service.TellDeployment(ctx, d.Deployment)
}

// look finds out whether a deployment has its turn.
func (a *Activities) look(ctx context.Context, n deployments.DeploymentName) (turn, error) {
	d, err := a.Store.Jobs.Deployment(ctx, n)
	switch {
	case err != nil:
		return turn{}, err
	case over(ctx, d):
		return turn{}, errOver
	case d.Cancelled:
		return turn{skipped: "it was cancelled before its turn"}, nil
	case !d.Begun.IsZero():
		return turn{}, nil
	}
	if d.Status == deployments.DeploymentNotStarted {
		if err := a.Service.TellDeployment(ctx, d.Deployment); err != nil {
			return turn{}, err
		}
		if _, err := a.change(ctx, n, func(d *jobs.Deployment) {
			d.Status = deployments.DeploymentAccepted
		}); err != nil {
			return turn{}, err
		}
	}
	if replaced, err := a.replaced(ctx, d); err != nil || replaced != "" {
		return turn{skipped: replaced}, err
	}
	if found, err := a.ahead(ctx, n); err != nil || found.why != "" {
		return found, err
	}
	if mode, err := a.Store.Organizations.Mode(ctx); err != nil || mode.Holds() != "" {
		return turn{why: "Waiting: " + mode.Holds() + ".", look: laterLook}, err
	}
	settings, err := a.Store.Jobs.DeploymentSettings(ctx, n.StackName)
	if err != nil || !settings.Paused {
		return turn{}, err
	}
	return turn{why: "The deployments of the stack are paused; they go on when they are resumed.", look: nextLook}, nil
}

// replaced returns which later deployment replaces one that may be skipped.
func (a *Activities) replaced(ctx context.Context, d jobs.Deployment) (string, error) {
	if !d.Settings.Options().SkipIntermediateDeployments {
		return "", nil
	}
	numbers, err := a.Store.Jobs.DeploymentNumbers(ctx, d.Name.StackName)
	if err != nil {
		return "", err
	}
	for i := len(numbers) - 1; i >= 0 && numbers[i] > d.Name.Number; i-- {
		name := deployments.DeploymentName{StackName: d.Name.StackName, Number: numbers[i]}
		later, err := a.Store.Jobs.Deployment(ctx, name)
		if err != nil {
			return "", err
		}
		if !later.Ended() && !later.Cancelled && later.Operation == d.Operation {
			return "the later " + later.Name.ID() + " takes its place", nil
		}
	}
	return "", nil
}

// ahead finds the deployment for which one waits. One that has had its turn and ended says that all before it have
// ended.
func (a *Activities) ahead(ctx context.Context, n deployments.DeploymentName) (turn, error) {
	numbers, err := a.Store.Jobs.DeploymentNumbers(ctx, n.StackName)
	if err != nil {
		return turn{}, err
	}
	for i := len(numbers) - 1; i >= 0; i-- {
		if numbers[i] >= n.Number {
			continue
		}
		earlier, err := a.Store.Jobs.Deployment(ctx, deployments.DeploymentName{StackName: n.StackName, Number: numbers[i]})
		if err != nil {
			return turn{}, err
		}
		if !earlier.Ended() {
			found := turn{why: "Waiting for " + earlier.Name.ID() + " (" + string(earlier.Operation) + ") of the stack.",
				look: nextLook}
			if earlier.Begun.IsZero() {
				found.look = laterLook
			}
			return found, a.endIfClosed(ctx, earlier)
		}
		if !earlier.Begun.IsZero() {
			return turn{}, nil
		}
	}
	return turn{}, nil
}

// endIfClosed ends a deployment whose workflow was ended from outside, or never began.
func (a *Activities) endIfClosed(ctx context.Context, d jobs.Deployment) error {
	described, err := a.Temporal.DescribeWorkflowExecution(ctx, deployments.DeploymentWorkflowID(d.Name), "")
	missing := (*serviceerror.NotFound)(nil)
	switch {
	case errors.As(err, &missing):
		if time.Since(d.Modified) < startedWithin {
			return nil
		}
	case err != nil:
		return nil //nolint:nilerr // Temporal is asked again
	case described.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return nil
	}
	end := func(d *jobs.Deployment) error {
		if d.Ended() {
			return errOver
		}
		d.Status, d.Error = deployments.DeploymentFailed, "its workflow was ended from outside, or never began"
		d.Settings = deployments.DeploymentSettings{}
		return nil
	}
	if d, err = a.Store.Jobs.Deployment(ctx, d.Name); err != nil || end(&d) != nil {
		return err // it ended before its workflow was closed
	}
	if err := a.Service.TellDeployment(ctx, d.Deployment); err != nil {
		return err // told first, because one that has ended is not looked at again
	}
	if _, err = a.Store.Jobs.ChangeDeployment(ctx, d.Name, end); errors.Is(err, errOver) {
		return nil
	}
	return err
}
