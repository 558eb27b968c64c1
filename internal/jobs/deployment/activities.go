// Package deployment has the activities of deployments: they wait for the turn of a deployment, get its program from a
// git repository, run the commands before it, and submit its updates as any client does. Errors are translated for
// Temporal as in package activities.
package deployment

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/jobs/scheduled"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/internal/sys/share"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Activities are the activities of deployments; register them as a whole.
type Activities struct {
	Temporal client.Client
	Store    *statestore.Store
	Service  *service.Service
	// Sandbox isolates what is run of a repository; nil: it is not isolated. Rooms is the directory of the rooms of
	// organizations.
	Sandbox *sandbox.Policy
	Rooms   string
	// Env is the service's own environment; see activities.Environment.
	Env []string
	// Sources decides which git servers may be asked.
	Sources Sources

	preparing *share.Places
}

// Sources decides which git servers may be asked: those at public addresses, and others.
type Sources struct {
	Private bool     // all others
	Hosts   []string // these
}

// preparations is how many deployments a worker prepares at a time: each may take the memory of its largest file twice.
// One organization gets at most preparationShare of them.
const preparations, preparationShare = 4, 3

// New returns the activities.
func New(a Activities) *Activities {
	a.preparing = share.NewPlaces(share.Limits{All: preparations, OfOne: preparationShare})
	return &a
}

// heartbeatEvery is the interval of heartbeats; pollEvery is how often a deployment looks whether it is cancelled.
const heartbeatEvery, pollEvery = 5 * time.Second, time.Second

// beat records heartbeats, with details, until ctx ends.
func beat(ctx context.Context, details ...any) {
	go func() {
		for ctx.Err() == nil {
			activity.RecordHeartbeat(ctx, details...)
			sleep(ctx, heartbeatEvery)
		}
	}()
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// errOver is the error about a deployment that has ended, or that another workflow run executes: a copy of its workflow
// does nothing.
var errOver = deployments.Errorf(deployments.CodeInvalid, "the deployment is over: it runs once")

// over reports whether this activity has nothing to do for a deployment, because it has ended, or another workflow run
// has begun it.
func over(ctx context.Context, d jobs.Deployment) bool {
	return d.Ended() || d.Run != "" && d.Run != workflowRun(ctx)
}

// workflowRun returns the workflow run of an activity.
func workflowRun(ctx context.Context) string { return activity.GetInfo(ctx).WorkflowExecution.RunID }

// change changes a deployment unless that is over.
func (a *Activities) change(
	ctx context.Context, n deployments.DeploymentName, change func(*jobs.Deployment),
) (jobs.Deployment, error) {
	return a.Store.Jobs.ChangeDeployment(ctx, n, func(d *jobs.Deployment) error {
		if over(ctx, *d) {
			return errOver
		}
		change(d)
		return nil
	})
}

// begin records that a step of a deployment begins, and that the one before has succeeded.
func begin(d *jobs.Deployment, name string) {
	now := time.Now().UTC()
	i := slices.IndexFunc(d.Steps, func(s deployments.DeploymentStep) bool { return s.Name == name })
	if i < 0 {
		for j := range d.Steps {
			finish(&d.Steps[j], deployments.DeploymentSucceeded, now)
		}
		d.Steps = append(d.Steps, deployments.DeploymentStep{Name: name, Started: now})
		i = len(d.Steps) - 1
	}
	d.Steps[i].Status, d.Steps[i].Changed = deployments.DeploymentRunning, now
}

// finish ends a step that has not ended.
func finish(s *deployments.DeploymentStep, status deployments.DeploymentStatus, now time.Time) {
	if s.Status == deployments.DeploymentRunning {
		s.Status, s.Changed = status, now
	}
}

// SubmitDeployment submits an update of a deployment. A repeated submission is the same update.
func (a *Activities) SubmitDeployment(
	ctx context.Context, in deployments.SubmitDeploymentInput,
) (deployments.UpdateName, error) {
	d, err := a.Store.Jobs.Deployment(ctx, in.Name)
	if err != nil {
		return deployments.UpdateName{}, failure.Of(err)
	}
	if over(ctx, d) || in.Request.Stack != in.Name.StackName {
		return deployments.UpdateName{}, failure.Of(errOver)
	}
	header := headerOf(d.Operation)
	accepted, err := a.Service.Submit(ctx, in.Request)
	if err != nil {
		return accepted.Update, failure.Of(err)
	}
	d, err = a.change(ctx, in.Name, func(d *jobs.Deployment) {
		if !slices.Contains(d.Updates, accepted.Update.Version) {
			d.Updates = append(d.Updates, accepted.Update.Version)
		}
		begin(d, header)
	})
	if err != nil {
		return accepted.Update, failure.Of(err)
	}
	at := jobs.LogPart{Name: in.Name, Step: stepOperation + slices.Index(d.Updates, accepted.Update.Version)}
	lines := []apitype.DeploymentLogLine{{Header: header, Timestamp: time.Now().UTC()}, {Timestamp: time.Now().UTC(),
		Line: "The operation is update " + accepted.Update.Version + " of the stack.\n"}}
	return accepted.Update, failure.Of(a.Store.Jobs.PutDeploymentLog(ctx, at, lines))
}

// headerOf returns the header of an operation in the log. At "pulumi OPERATION", the stock CLI goes on with the events
// of the update, for which it must know the operation; the others it shows by the lines of the log.
func headerOf(operation apitype.PulumiOperation) string {
	switch operation {
	case apitype.DetectDrift:
		return "pulumi refresh --preview-only"
	case apitype.RemediateDrift:
		return "pulumi up --refresh"
	}
	return "pulumi " + string(operation)
}

// keepsSlot is how long an update of a deployment is followed without a pause.
const keepsSlot = 10 * time.Minute

// FollowDeployment returns once an update of a deployment has ended, and cancels it first if it is told to.
func (a *Activities) FollowDeployment(
	ctx context.Context, in deployments.FollowDeploymentInput,
) (deployments.UpdateInfo, error) {
	if in.Cancel {
		err := a.Service.Cancel(ctx, in.Update, false)
		if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return deployments.UpdateInfo{}, failure.Of(err)
		}
	}
	runs := &scheduled.Activities{Temporal: a.Temporal, Store: a.Store, Service: a.Service}
	return scheduled.Follow(ctx, runs, in.Update, keepsSlot)
}

// EndDeployment records how a deployment has ended, and tells webhooks. What it ran is forgotten: it has secrets in it.
func (a *Activities) EndDeployment(
	ctx context.Context, in deployments.EndDeploymentInput,
) (deployments.EndedDeployment, error) {
	defer heartbeat.Beat(ctx)()
	none := deployments.EndedDeployment{}
	begun, err := a.Store.Jobs.Deployment(ctx, in.Name)
	switch {
	case err != nil:
		return none, failure.Of(unlessAbsent(err))
	case begun.Run != workflowRun(ctx) && over(ctx, begun):
		return none, failure.Of(errOver)
	}
	at := jobs.LogPart{Name: in.Name, Step: stepEnd}
	if err := a.writeEnd(ctx, at, in); err != nil {
		return none, failure.Of(err)
	}
	stack, err := a.Store.StackID(ctx, in.Name.StackName)
	if err != nil {
		return none, failure.Of(unlessAbsent(err))
	}
	d, err := a.change(ctx, in.Name, func(d *jobs.Deployment) {
		if d.Operation == apitype.Destroy && in.Status == deployments.DeploymentSucceeded &&
			d.Settings.Options().DeleteAfterDestroy {
			d.Removes = stack
		}
		d.Status, d.Error, d.Settings, d.Run = in.Status, in.Error, deployments.DeploymentSettings{}, workflowRun(ctx)
		last := deployments.DeploymentSucceeded
		if in.Status == deployments.DeploymentFailed {
			last = deployments.DeploymentFailed
		}
		for i := range d.Steps {
			finish(&d.Steps[i], last, time.Now().UTC())
		}
	})
	if err != nil && !errors.Is(err, errOver) { // errOver: it is repeated
		return none, failure.Of(unlessAbsent(err))
	}
	return deployments.EndedDeployment{RemovesStack: d.Removes != ""},
		failure.Of(a.Service.TellDeployment(ctx, d.Deployment))
}
