package service

import (
	"context"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/jobs"
)

const (
	// requestExpiry is how long a run that was requested by hand may take to begin.
	requestExpiry = time.Hour
	// skew is how far the clocks of Temporal and of the service may differ.
	skew = time.Minute
	// starting is how long Temporal may take to start a run.
	starting = 5 * time.Minute
)

// admit rejects a scheduled run that is not due, as CodeInvalid, which is not retried. Temporal starts the runs, and
// anyone with access to its namespace can start one at any time, so the desired schedule is in the bucket. A run is
// admitted once for each time at which it is due, or when a person has requested it; then everything that it submits is
// admitted.
func (s *Service) admit(ctx context.Context, in deployments.SubmitInput, run workflow.Execution) error {
	n, due, err := deployments.ScheduleOfRun(run.ID)
	if err != nil {
		return err
	}
	if n != in.Schedule.Name || strings.TrimSuffix(in.RequestID, "-look") != run.RunID {
		return deployments.Errorf(deployments.CodeInvalid, "the run %s submits what is of another one, so it is "+
			"refused", run.ID)
	}
	w, err := s.store.Jobs.Schedule(ctx, n)
	switch {
	case err != nil && deployments.CodeOf(err) == deployments.CodeNotFound, err == nil && w.ID != in.ID:
		return noSchedule(n)
	case err != nil:
		return err
	case w.Run == run.RunID:
		return nil
	}
	described, err := s.temporal.DescribeWorkflowExecution(ctx, run.ID, run.RunID)
	if err != nil {
		return failure("look when the run began", err)
	}
	r := runOf{id: run.RunID, due: due, started: described.GetWorkflowExecutionInfo().GetStartTime().AsTime(),
		now: time.Now()}
	_, err = s.store.Jobs.ChangeSchedule(ctx, n, func(w *jobs.Schedule) error {
		if w.ID != in.ID {
			return noSchedule(n)
		}
		return r.take(w)
	})
	return err
}

// noSchedule returns the error about a schedule that the bucket does not have.
func noSchedule(n deployments.ScheduleName) error {
	return deployments.Errorf(deployments.CodeInvalid,
		"the schedule %s of %s does not run: it was removed, or made by an earlier build of deployctl; "+
			"remove it with `deployctl schedule rm %s`, and create it again",
		n.Name, n.StackName, n.Name)
}

// runOf is a run of a schedule. Its start is by Temporal's clock, now by this machine's.
type runOf struct {
	id                string
	due, started, now time.Time
}

// take records an admitted run in the schedule.
func (r runOf) take(w *jobs.Schedule) error {
	refusal := r.refusal(w)
	switch {
	case w.Run == r.id:
	case refusal == "":
		w.Run, w.Due = r.id, r.due
	case !w.RunRequested.IsZero() && r.now.Sub(w.RunRequested) <= requestExpiry:
		w.Run, w.RunRequested = r.id, time.Time{}
	default:
		return deployments.Errorf(deployments.CodeInvalid,
			"the schedule %s does not run: %s. Run it with `deployctl schedule run %s`", w.Schedule.Name, refusal,
			w.Schedule.Name.Name)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// refusal says why a run is not due; empty when it is.
func (r runOf) refusal(w *jobs.Schedule) string {
	late := catchupWindow
	if !w.Schedule.At.IsZero() {
		late = catchupWindowOnce
	}
	switch {
	case w.Paused:
		return "it is paused"
	case r.started.Before(r.due):
		return "it is not due yet"
	case !r.due.After(w.Due):
		return "it has run for " + r.due.Format(time.RFC3339) + " already"
	case later(r.due, w.Schedule.At).Before(w.Since): // Temporal rounds times to seconds
		return "it was made or resumed after " + r.due.Format(time.RFC3339)
	case r.started.Sub(r.due) > late+jitter+starting:
		return "the time for the run of " + r.due.Format(time.RFC3339) + " is over"
	case !dueAt(w, r.due):
		return "it is not due at " + r.due.Format(time.RFC3339)
	}
	return ""
}

// ScheduleFailed pauses a schedule whose run has failed, as Temporal does. A workflow that no schedule has started,
// such as a deployment, pauses none.
func (s *Service) ScheduleFailed(ctx context.Context, run workflow.Execution) error {
	n, _, err := deployments.ScheduleOfRun(run.ID)
	if err != nil {
		return nil //nolint:nilerr // it is no run of a schedule
	}
	_, err = s.store.Jobs.ChangeSchedule(ctx, n, func(w *jobs.Schedule) error {
		w.Paused = w.Paused || w.Run == run.RunID
		return nil
	})
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return nil // removed meanwhile, perhaps with its stack
	}
	return err
}
