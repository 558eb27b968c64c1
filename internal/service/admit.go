package service

import (
	"context"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

const (
	// askedFor is how long a schedule that was asked to run at once may take to begin.
	askedFor = time.Hour
	// skew is how far the clocks of Temporal and of the service may differ.
	skew = time.Minute
	// starting is how long Temporal may take to start a run.
	starting = 5 * time.Minute
)

// admit refuses a run of a schedule that nobody wants, as CodeInvalid, which is not tried again: it could become due.
// Temporal starts the runs, and whoever can use its namespace can have it start any, at any time: so what is wanted is
// in the bucket. A run is let through when it is due, for the first time at that time, or when somebody has asked for
// it; all that it submits is then let through.
func (s *Service) admit(ctx context.Context, in deployments.SubmitInput, run workflow.Execution) error {
	n, due, err := deployments.ScheduleOfRun(run.ID)
	if err != nil {
		return err
	}
	if n != in.Schedule.Name || strings.TrimSuffix(in.RequestID, "-look") != run.RunID {
		return deployments.Errorf(deployments.CodeInvalid, "the run %s submits what is of another one, so it is "+
			"refused", run.ID)
	}
	w, err := s.store.Schedule(ctx, n)
	switch {
	case err != nil && deployments.CodeOf(err) == deployments.CodeNotFound, err == nil && w.ID != in.ID:
		return unwanted(n)
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
	_, err = s.store.ChangeSchedule(ctx, n, func(w *statestore.DesiredSchedule) error {
		if w.ID != in.ID {
			return unwanted(n)
		}
		return r.take(w)
	})
	return err
}

// unwanted is the refusal of a schedule that the bucket does not have.
func unwanted(n deployments.ScheduleName) error {
	return deployments.Errorf(deployments.CodeInvalid,
		"the schedule %s of %s does not run: it was removed, or made by an earlier build of deployctl; "+
			"remove it with `deployctl schedule rm %s`, and make it anew",
		n.Name, n.StackName, n.Name)
}

// runOf is a run of a schedule. Temporal's clock says when it started, this machine's what time it is.
type runOf struct {
	id                string
	due, started, now time.Time
}

// take makes a run that is wanted the one that the schedule has let through.
func (r runOf) take(w *statestore.DesiredSchedule) error {
	refusal := r.refusal(w)
	switch {
	case w.Run == r.id:
	case refusal == "":
		w.Run, w.Due = r.id, r.due
	case !w.RunRequested.IsZero() && r.now.Sub(w.RunRequested) <= askedFor:
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
func (r runOf) refusal(w *statestore.DesiredSchedule) string {
	late := catchUp
	if !w.Schedule.At.IsZero() {
		late = catchUpOnce
	}
	switch {
	case w.Paused:
		return "it is paused"
	case r.started.Before(r.due):
		return "it is not due yet"
	case !r.due.After(w.Due):
		return "it has run for " + r.due.Format(time.RFC3339) + " already"
	case later(r.due, w.Schedule.At).Before(w.Since): // Temporal knows a time to the second
		return "it was made or resumed after " + r.due.Format(time.RFC3339)
	case r.started.Sub(r.due) > late+jitter+starting:
		return "the time for the run of " + r.due.Format(time.RFC3339) + " is over"
	case !dueAt(w, r.due):
		return "it is not due at " + r.due.Format(time.RFC3339)
	}
	return ""
}

// ScheduleFailed pauses a schedule whose run has failed, as Temporal does.
func (s *Service) ScheduleFailed(ctx context.Context, run workflow.Execution) error {
	n, _, err := deployments.ScheduleOfRun(run.ID)
	if err != nil {
		return err
	}
	_, err = s.store.ChangeSchedule(ctx, n, func(w *statestore.DesiredSchedule) error {
		w.Paused = w.Paused || w.Run == run.RunID
		return nil
	})
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return nil // it was removed, with its stack maybe
	}
	return err
}
