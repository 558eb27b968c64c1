// Package scheduled has the activities of scheduled runs: they submit updates as clients do, wait for their end, and
// compile the report of a drift check from its event log. Workers register them also on a separate task queue, of which
// each worker runs only a few tasks at a time. Errors are translated for Temporal as in package activities.
package scheduled

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/deployctl/deployctl/workflows"
)

// Activities are the activities of scheduled runs; register them as a whole. All fields are set.
type Activities struct {
	Temporal client.Client
	Store    *statestore.Store
	Service  *service.Service
}

const (
	// heartbeatEvery is the interval of AwaitUpdate's heartbeats; pollEvery is how often it checks an update that waits in
	// its queue.
	heartbeatEvery, pollEvery = 10 * time.Second, time.Second
	// slotTime is how long a submitted update keeps its slot, unless it ends before: a long update must not delay others.
	slotTime = time.Minute
	// longestPause is the longest pause before another look at an update that takes longer.
	longestPause = 15 * time.Second
	// partsAtOnce bounds the parts of a log that are read in one call.
	partsAtOnce = 50
)

// SubmitUpdate submits an update as clients do, and retries while another update is changing the stack. It returns
// when the update has ended or has run for slotTime, so that only a few begin at a time.
func (a *Activities) SubmitUpdate(ctx context.Context, in deployments.SubmitInput) (deployments.Accepted, error) {
	switch mode, err := a.Store.Organizations.Mode(ctx); {
	case err != nil:
		return deployments.Accepted{}, failure.Of(err)
	case mode.Holds() != "": // the run waits
		return deployments.Accepted{}, failure.Later(ctx, mode.Holds(), longestPause)
	}
	accepted, err := a.Service.SubmitScheduled(ctx, in, activity.GetInfo(ctx).WorkflowExecution)
	if err != nil && deployments.CodeOf(err) == deployments.CodeConflict {
		return accepted, temporal.NewApplicationError(err.Error(), string(deployments.CodeConflict))
	}
	if err != nil {
		return accepted, failure.Of(err)
	}
	ctx, cancel := context.WithTimeout(ctx, slotTime)
	defer cancel()
	_, _, _ = a.follow(ctx, accepted.Update, true) // AwaitUpdate reports its end
	return accepted, nil
}

// AwaitUpdate returns once the update has ended, by its own workflow or by recovery, and its continuation too, if it
// was migrated. If this worker stops, another worker continues the activity.
func (a *Activities) AwaitUpdate(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
	return Follow(ctx, a, u, slotTime)
}

// Follow is the activity AwaitUpdate that keeps its slot for a time. Then it comes back again and again for a look:
// updates that do not end must not take the slots of others.
func Follow(
	ctx context.Context, a *Activities, u deployments.UpdateName, keeps time.Duration,
) (deployments.UpdateInfo, error) {
	looking, cancel := context.WithTimeout(ctx, keeps)
	defer cancel()
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			cancel()
		case <-looking.Done():
		}
	}()
	info, over, err := a.follow(looking, u, activity.GetInfo(ctx).Attempt == 1)
	switch {
	case ctx.Err() != nil && !over:
		return info, ctx.Err()
	case !over && (err == nil || looking.Err() != nil):
		return info, failure.Later(ctx, "update "+u.Version+" has not ended yet", longestPause)
	case err == nil && info.Status != deployments.StatusSucceeded:
		err = a.Service.RunFailed(ctx, activity.GetInfo(ctx).WorkflowExecution, info)
	}
	return info, err
}

// follow looks whether an update and its continuations are over; if it waits, until they are.
func (a *Activities) follow(
	ctx context.Context, u deployments.UpdateName, waits bool,
) (info deployments.UpdateInfo, over bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			activity.RecordHeartbeat(ctx)
			pause(ctx, heartbeatEvery)
		}
	}()
	for {
		info, over, err = a.look(ctx, u, waits)
		switch {
		case err != nil || over && info.Next == "":
			return info, over, err
		case over:
			u.Version = info.Next
		case !waits || ctx.Err() != nil:
			return info, false, nil
		default:
			pause(ctx, pollEvery) // it waits in its queue or is being recovered, or Temporal is unreachable
		}
	}
}

// look looks whether an update is over; if it waits, until its workflow has ended.
func (a *Activities) look(
	ctx context.Context, u deployments.UpdateName, waits bool,
) (info deployments.UpdateInfo, over bool, err error) {
	id := deployments.UpdateWorkflowID(u)
	if !waits {
		described, err := a.Temporal.DescribeWorkflowExecution(ctx, id, "")
		if err == nil && described.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return info, false, nil
		}
	}
	err = a.Temporal.GetWorkflow(ctx, id, "").Get(ctx, &info)
	if err == nil || ctx.Err() != nil {
		return info, err == nil, err
	}
	if settled, ok := workflows.InfoOf(err); ok {
		return settled, true, nil
	}
	if refused := (*temporal.WorkflowExecutionError)(nil); u.Number() == 0 && errors.As(err, &refused) {
		return refusedPreview(u, refused), true, nil
	}
	info, err = a.ended(ctx, u)
	return info, err == nil && !info.Ended.IsZero(), failure.Of(err)
}

// ended returns the description of an ended update; one without an end if it has not ended.
func (a *Activities) ended(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
	if _, err := a.Store.Head(ctx, u.StackName); err != nil {
		return deployments.UpdateInfo{}, err // its stack was removed
	}
	info, err := a.Store.Updates.Info(ctx, u)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		err = nil
	}
	return info, err
}

// refusedPreview describes a preview that did not begin: previews are not recovered.
func refusedPreview(u deployments.UpdateName, err error) deployments.UpdateInfo {
	info := deployments.UpdateInfo{Update: u, DryRun: true, Status: deployments.StatusFailed, Error: err.Error()}
	if failure := (*temporal.ApplicationError)(nil); errors.As(err, &failure) {
		info.Error = failure.Message()
	}
	return info
}

// ReportDrift compiles the report of a drift check from its event log, and stores it.
func (a *Activities) ReportDrift(
	ctx context.Context, in deployments.DriftReportInput,
) (deployments.DriftSummary, error) {
	state, err := a.eventLog(ctx, in.Check)
	if err != nil {
		return deployments.DriftSummary{}, failure.Of(err)
	}
	if moved, err := a.changedSince(ctx, in, state.End.Started); err != nil || moved {
		return deployments.DriftSummary{Details: "The stack was updated during the check. The next check reports its drift."},
			failure.Of(err)
	}
	drift := deployments.Drift{Update: in.Check, At: state.End.Ended, Resources: state.Drift(),
		Remediation: in.Remediation}
	if err := a.Store.Jobs.PutDrift(ctx, in.Check.StackName, drift); err != nil {
		return deployments.DriftSummary{}, failure.Of(err)
	}
	if err := a.tellDrift(ctx, drift); err != nil {
		return deployments.DriftSummary{}, failure.Of(err)
	}
	found := deployments.DriftSummary{Drifted: len(drift.Resources), Details: projection.DriftMarkdown(drift.Resources)}
	if in.Remediation != nil {
		found.Details += "\nRemediated by " + in.Remediation.String() + ".\n"
	}
	return found, nil
}

// tellDrift tells webhooks what a drift check has found, or that a remediation has succeeded.
func (a *Activities) tellDrift(ctx context.Context, d deployments.Drift) error {
	u := d.Update
	if d.Remediation != nil {
		u = *d.Remediation
	}
	info, err := a.Store.Updates.Info(ctx, u)
	if err != nil && deployments.CodeOf(err) == deployments.CodeNotFound {
		return nil // it is no longer kept
	}
	if err != nil {
		return err
	}
	return a.Service.TellDrift(ctx, d, info)
}

// RemoveStack removes the stack of a schedule whose destroy has succeeded, and the schedule with it.
func (a *Activities) RemoveStack(ctx context.Context, in deployments.ScheduledInput) error {
	return failure.Of(a.Service.RemoveScheduled(ctx, in, activity.GetInfo(ctx).WorkflowExecution))
}

// changedSince reports whether another update has changed the stack since the drift check began: its changes would look
// like drift.
func (a *Activities) changedSince(ctx context.Context, in deployments.DriftReportInput, since time.Time) (bool, error) {
	if in.Remediation != nil {
		return false, nil
	}
	head, err := a.Store.Head(ctx, in.Check.StackName)
	return head.Active != nil || head.Updated.After(since), err
}

// eventLog returns the projection of the event log of an ended update.
func (a *Activities) eventLog(ctx context.Context, u deployments.UpdateName) (*projection.State, error) {
	state := projection.NewState()
	next := updates.Part{Update: u, Stream: eventlog.RunStream, Number: 1}
	for state.End == nil {
		parts, err := a.Store.Updates.ReadEvents(ctx, next, partsAtOnce)
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 {
			return nil, deployments.Errorf(deployments.CodeUnavailable, "the log of %s has no end yet", u)
		}
		for _, data := range parts {
			events, err := eventlog.Decode(data)
			if err != nil {
				return nil, err
			}
			for _, e := range events {
				state.Apply(e)
			}
		}
		next.Number += len(parts)
	}
	return state, nil
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
