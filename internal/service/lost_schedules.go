package service

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// Temporal loses its schedules when its namespace is deleted or put back to an earlier time. What is wanted of them is
// in the bucket (see docs/adr/0029), so whoever looks for one has it made again.

// makeAgain makes a schedule that Temporal does not know there again, as the bucket has it, which gets a schedule after
// Temporal and loses it before. It returns false when the bucket has none, either, and for a one-time schedule that has
// run: Temporal removes that once its run is forgotten. An overError says that its time is over.
func (s *Service) makeAgain(ctx context.Context, n deployments.ScheduleName) (bool, error) {
	w, err := s.store.Schedule(ctx, n)
	once := !w.Schedule.At.IsZero()
	switch {
	case notFound(err):
		return false, nil
	case err != nil:
		return false, err
	case once && !w.Due.IsZero():
		return false, nil
	case once && w.Schedule.At.Before(time.Now()):
		return false, &overError{w}
	}
	queue, err := s.TaskQueue(ctx, n.Organization)
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
	if err != nil {
		return false, notPossible("make the schedule again", err)
	}
	if _, err := s.store.Schedule(ctx, n); notFound(err) { // it was removed meanwhile
		return false, failure("remove the schedule", handle.Delete(context.WithoutCancel(ctx)))
	}
	return true, nil
}

// overError says that Temporal has lost a one-time schedule that had not run, and whose time is over. It is not made
// again: nobody may expect its run any more.
type overError struct{ wanted statestore.DesiredSchedule }

func (e *overError) Error() string {
	return "schedule " + e.wanted.Schedule.Name.Name + " does not run: " + e.note()
}

func (e *overError) note() string {
	return "Temporal has lost it, and its time is over: create it again, or remove it with `deployctl schedule rm " +
		e.wanted.Schedule.Name.Name + "`"
}

// Unwrap gives it the code of what is to be decided by a person.
func (e *overError) Unwrap() error {
	return &deployments.Error{Code: deployments.CodeConflict, Message: e.Error()}
}

// schedule describes the schedule, as far as the bucket knows it.
func (e *overError) schedule() deployments.Schedule {
	sched := e.wanted.Schedule
	sched.Created, sched.Paused, sched.Note = e.wanted.Made, e.wanted.Paused, e.note()
	return sched
}
