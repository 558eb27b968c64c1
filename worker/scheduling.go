package worker

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/display"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/workflows"
)

// scheduling are the activities of the runs of schedules.
type scheduling struct {
	connection *Connection
	service    *service.Service
}

const (
	// beat is how often following an update is reported; look is how often one is looked for that waits in its queue.
	beat, look = 10 * time.Second, time.Second
	// placed is how long an update that was submitted keeps its place, unless it ends before: one that takes long, or
	// that waits for somebody, does not hold others up.
	placed = time.Minute
	// partsAtOnce bounds the parts of a log that are read in one go.
	partsAtOnce = 50
)

// Submit submits an update by the same way as clients do, again and again while somebody else is changing the stack. It
// returns when the update has ended or lasts, so that only few begin at a time.
func (s *scheduling) Submit(ctx context.Context, in deployments.SubmitInput) (deployments.Accepted, error) {
	accepted, err := s.service.SubmitScheduled(ctx, in, activity.GetInfo(ctx).WorkflowExecution)
	if err != nil && deployments.CodeOf(err) == deployments.CodeConflict {
		return accepted, temporal.NewApplicationError(err.Error(), string(deployments.CodeConflict))
	}
	if err != nil {
		return accepted, activities.Failure(err)
	}
	ctx, cancel := context.WithTimeout(ctx, placed)
	defer cancel()
	_, _ = s.Follow(ctx, accepted.Update) // how it ends is for who follows it
	return accepted, nil
}

// Follow returns once the update has ended, whether its own workflow ended it or its stack recovered it, and so has
// what it goes on as. A worker that stops leaves it to the next.
func (s *scheduling) Follow(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			cancel()
		case <-ctx.Done():
		}
	}()
	info, err := s.follow(ctx, u)
	for err == nil && info.Next != "" {
		u.Version = info.Next
		info, err = s.follow(ctx, u)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = ctx.Err()
	case err == nil && info.Status != string(engine.StatusSucceeded):
		err = s.service.ScheduleFailed(ctx, activity.GetInfo(ctx).WorkflowExecution)
	}
	return info, err
}

func (s *scheduling) follow(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			activity.RecordHeartbeat(ctx)
			pause(ctx, beat)
		}
	}()
	for {
		var info deployments.UpdateInfo
		err := s.connection.Client.GetWorkflow(ctx, deployments.UpdateWorkflowID(u), "").Get(ctx, &info)
		if err == nil || ctx.Err() != nil {
			return info, err
		}
		if settled, ok := workflows.InfoOf(err); ok {
			return settled, nil
		}
		if refused := (*temporal.WorkflowExecutionError)(nil); u.Number() == 0 && errors.As(err, &refused) {
			return refusedPreview(u, refused), nil
		}
		if info, err := s.ended(ctx, u); err != nil || !info.Ended.IsZero() {
			return info, activities.Failure(err)
		}
		pause(ctx, look) // it waits in its queue, or is being recovered, or Temporal is away
	}
}

// ended gives the description of an update that is over; one without an end when it is not.
func (s *scheduling) ended(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
	if _, err := s.connection.Store.Head(ctx, u.StackName); err != nil {
		return deployments.UpdateInfo{}, err // its stack is gone, and it with it
	}
	info, err := s.connection.Store.Info(ctx, u)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		err = nil
	}
	return info, err
}

// refusedPreview tells of a preview that did not begin: nobody recovers one, for it had nothing.
func refusedPreview(u deployments.UpdateName, err error) deployments.UpdateInfo {
	info := deployments.UpdateInfo{Update: u, DryRun: true, Status: string(engine.StatusFailed), Error: err.Error()}
	if failure := (*temporal.ApplicationError)(nil); errors.As(err, &failure) {
		info.Error = failure.Message()
	}
	return info
}

// Compile makes the report of a look for drift of what that has logged, and stores it.
func (s *scheduling) Compile(ctx context.Context, in deployments.DriftReportInput) (deployments.DriftSummary, error) {
	state, err := s.logged(ctx, in.Check)
	if err != nil {
		return deployments.DriftSummary{}, activities.Failure(err)
	}
	if moved, err := s.moved(ctx, in, state.End.Started); err != nil || moved {
		return deployments.DriftSummary{Details: "The stack was updated meanwhile: the next look will tell."},
			activities.Failure(err)
	}
	drift := deployments.Drift{Update: in.Check, At: state.End.Ended, Resources: state.Drift(), Remediation: in.Remediation}
	if err := s.connection.Store.PutDrift(ctx, in.Check.StackName, drift); err != nil {
		return deployments.DriftSummary{}, activities.Failure(err)
	}
	found := deployments.DriftSummary{Drifted: len(drift.Resources), Details: display.DriftMarkdown(drift.Resources)}
	if in.Remediation != nil {
		found.Details += "\nPut right by " + in.Remediation.String() + ".\n"
	}
	return found, nil
}

// moved tells whether the stack was changed by somebody else since the look began: what that made would seem to have
// drifted.
func (s *scheduling) moved(ctx context.Context, in deployments.DriftReportInput, since time.Time) (bool, error) {
	if in.Remediation != nil {
		return false, nil
	}
	head, err := s.connection.Store.Head(ctx, in.Check.StackName)
	return head.Active != nil || head.Updated.After(since), err
}

// logged is what the log of an update that has ended says.
func (s *scheduling) logged(ctx context.Context, u deployments.UpdateName) (*display.State, error) {
	state := display.NewState()
	next := statestore.Part{Update: u, Stream: eventlog.RunStream, Number: 1}
	for state.End == nil {
		parts, err := s.connection.Store.ReadEvents(ctx, next, partsAtOnce)
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

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
