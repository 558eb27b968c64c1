package service

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/jobs"
)

// Temporal loses its schedules when its namespace is deleted or put back to an earlier time. What is wanted of them is
// in the bucket (see docs/adr/0029), so whoever looks for one has it made again.

// makeAgain makes a schedule that Temporal does not know there again, as the bucket has it, which gets a schedule after
// Temporal and loses it before. It returns false when the bucket has none, either, and for a one-time schedule that has
// run: Temporal removes that once its run is forgotten. A lostError says that it stays lost.
func (s *Service) makeAgain(ctx context.Context, n deployments.ScheduleName) (bool, error) {
	w, err := s.store.Jobs.Schedule(ctx, n)
	once := !w.Schedule.At.IsZero()
	switch {
	case notFound(err):
		return false, nil
	case err != nil:
		return false, err
	case once && !w.Due.IsZero():
		return false, nil
	case once && w.Schedule.At.Before(time.Now()):
		return false, &lostError{wanted: w, why: "its time is over"} // nobody may expect its run any more
	}
	if mode, err := s.store.Organizations.Mode(ctx); err != nil {
		return false, err
	} else if mode.On(time.Now()) { // also who only looks makes it again
		return false, &lostError{wanted: w, why: "the service begins nothing now", passes: true}
	}
	queue, err := s.Organizations.TaskQueue(ctx, n.Organization)
	if err != nil {
		return false, err
	}
	w.Schedule.Paused = w.Paused
	o := optionsOf(w.ScheduledInput, queue, w.Made)
	if o.Note = "made again, because Temporal had lost it"; w.Paused {
		o.Note = "it was paused when Temporal lost it"
	}
	handle, err := s.temporal.ScheduleClient().Create(ctx, o)
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return true, nil // another call has made it
	}
	if invalid := (*serviceerror.InvalidArgument)(nil); errors.As(err, &invalid) {
		return false, &lostError{wanted: w, why: "does not take it any more (" + invalid.Message + ")"}
	}
	unavailable, late := (*serviceerror.Unavailable)(nil), (*serviceerror.DeadlineExceeded)(nil)
	switch {
	case err == nil:
	case errors.As(err, &unavailable), errors.As(err, &late), ctx.Err() != nil: // nothing else is known, either
		return false, failure("make the schedule again", err)
	default: // the others of a list are shown
		return false, &lostError{wanted: w, why: "does not take it now (" + err.Error() + ")", passes: true}
	}
	if _, err := s.store.Jobs.Schedule(ctx, n); notFound(err) { // it was removed meanwhile
		return false, failure("remove the schedule", handle.Delete(context.WithoutCancel(ctx)))
	}
	return true, nil
}

// lostError says that Temporal has lost a schedule that is not made again, and why.
type lostError struct {
	wanted jobs.Schedule
	why    string
	passes bool // the reason; then it is made again
}

func (e *lostError) Error() string {
	return "schedule " + e.wanted.Schedule.Name.Name + " does not run: " + e.note()
}

func (e *lostError) note() string {
	if e.passes {
		return "Temporal has lost it, and " + e.why + ": it is made again when it is looked for later"
	}
	return "Temporal has lost it, and " + e.why + ": create it again, or remove it with `deployctl schedule rm " +
		e.wanted.Schedule.Name.Name + "`"
}

// Unwrap gives it the code of what is to be decided by a person.
func (e *lostError) Unwrap() error {
	return &deployments.Error{Code: deployments.CodeConflict, Message: e.Error()}
}

// schedule describes the schedule, as far as the bucket knows it.
func (e *lostError) schedule() deployments.Schedule {
	sched := e.wanted.Schedule
	sched.Created, sched.Paused, sched.Note = e.wanted.Made, e.wanted.Paused, e.note()
	return sched
}
