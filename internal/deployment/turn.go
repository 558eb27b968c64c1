package deployment

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// startedWithin is how long the start of a deployment's workflow may take after it was recorded; longestPoll limits the
// pauses between looks for a turn.
const startedWithin, longestPoll = time.Minute, 5 * time.Second

// AwaitTurn returns when a deployment has its turn: every one of the stack with a lower number has ended, and the
// stack's deployments are not paused. One that was cancelled, or that a later one replaces, is skipped. Webhooks are
// told that it is queued, and that it has started.
func (a *Activities) AwaitTurn(ctx context.Context, n deployments.DeploymentName) (deployments.DeploymentTurn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beat(ctx)
	if d, err := a.Store.Deployment(ctx, n); err != nil {
		return deployments.DeploymentTurn{}, activities.Failure(err)
	} else if err := a.Service.TellDeployment(ctx, d.Deployment); err != nil {
		return deployments.DeploymentTurn{}, activities.Failure(err)
	}
	log := a.log(ctx, n, stepTurn, nil)
	defer log.close()
	pause := pollEvery
	for told := ""; ; sleep(ctx, pause) {
		if ctx.Err() != nil {
			return deployments.DeploymentTurn{}, ctx.Err()
		}
		why, skipped, err := a.waits(ctx, n)
		if err != nil || skipped != "" {
			return deployments.DeploymentTurn{Skipped: skipped}, activities.Failure(err)
		}
		if why == "" {
			d, err := a.change(ctx, n, func(d *statestore.StoredDeployment) {
				d.Status = deployments.DeploymentRunning
				if d.Begun.IsZero() {
					d.Begun = time.Now().UTC()
				}
			})
			if err == nil {
				err = a.Service.TellDeployment(ctx, d.Deployment)
			}
			return deployments.DeploymentTurn{}, activities.Failure(err)
		}
		if pause = min(pause*5/4, longestPoll); told != why {
			told, pause = why, pollEvery
			log.line(why)
		}
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			return deployments.DeploymentTurn{}, context.Canceled // another worker goes on
		default:
		}
	}
}

// waits returns what a deployment waits for, or why it is skipped; neither when it has its turn.
func (a *Activities) waits(ctx context.Context, n deployments.DeploymentName) (why, skipped string, err error) {
	d, err := a.Store.Deployment(ctx, n)
	switch {
	case err != nil:
		return "", "", err
	case d.Ended():
		return "", "", errOver
	case d.Cancelled:
		return "", "it was cancelled before its turn", nil
	case !d.Begun.IsZero():
		return "", "", nil
	}
	if d.Status == deployments.DeploymentNotStarted {
		if _, err := a.change(ctx, n, func(d *statestore.StoredDeployment) {
			d.Status = deployments.DeploymentAccepted
		}); err != nil {
			return "", "", err
		}
	}
	if replaced, err := a.replaced(ctx, d); err != nil || replaced != "" {
		return "", replaced, err
	}
	settings, err := a.Store.DeploymentSettings(ctx, n.StackName)
	if err != nil {
		return "", "", err
	}
	if settings.Paused {
		return "The deployments of the stack are paused; they go on when they are resumed.", "", nil
	}
	return a.ahead(ctx, n)
}

// replaced returns which later deployment replaces one that may be skipped.
func (a *Activities) replaced(ctx context.Context, d statestore.StoredDeployment) (string, error) {
	if !d.Settings.Options().SkipIntermediateDeployments {
		return "", nil
	}
	numbers, err := a.Store.DeploymentNumbers(ctx, d.Name.StackName)
	if err != nil {
		return "", err
	}
	for i := len(numbers) - 1; i >= 0 && numbers[i] > d.Name.Number; i-- {
		later, err := a.Store.Deployment(ctx, deployments.DeploymentName{StackName: d.Name.StackName, Number: numbers[i]})
		if err != nil {
			return "", err
		}
		if !later.Ended() && !later.Cancelled && later.Operation == d.Operation {
			return "the later " + later.Name.ID() + " takes its place", nil
		}
	}
	return "", nil
}

// ahead returns the deployment for which one waits. One that has had its turn and ended says that all before it have
// ended.
func (a *Activities) ahead(ctx context.Context, n deployments.DeploymentName) (why, skipped string, err error) {
	numbers, err := a.Store.DeploymentNumbers(ctx, n.StackName)
	if err != nil {
		return "", "", err
	}
	for i := len(numbers) - 1; i >= 0; i-- {
		if numbers[i] >= n.Number {
			continue
		}
		earlier, err := a.Store.Deployment(ctx, deployments.DeploymentName{StackName: n.StackName, Number: numbers[i]})
		if err != nil {
			return "", "", err
		}
		if !earlier.Ended() {
			if err := a.endIfClosed(ctx, earlier); err != nil {
				return "", "", err
			}
			return "Waiting for " + earlier.Name.ID() + " (" + string(earlier.Operation) + ") of the stack.", "", nil
		}
		if !earlier.Begun.IsZero() {
			return "", "", nil
		}
	}
	return "", "", nil
}

// endIfClosed ends a deployment whose workflow was ended from outside, or never began.
func (a *Activities) endIfClosed(ctx context.Context, d statestore.StoredDeployment) error {
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
	end := func(d *statestore.StoredDeployment) {
		d.Status, d.Error = deployments.DeploymentFailed, "its workflow was ended from outside, or never began"
		d.Settings = deployments.DeploymentSettings{}
	}
	if d, err = a.Store.Deployment(ctx, d.Name); err != nil || d.Ended() {
		return err // it ended before its workflow was closed
	}
	end(&d)
	if err := a.Service.TellDeployment(ctx, d.Deployment); err != nil {
		return err // told first, because one that has ended is not looked at again
	}
	if _, err = a.change(ctx, d.Name, end); errors.Is(err, errOver) {
		return nil
	}
	return err
}
