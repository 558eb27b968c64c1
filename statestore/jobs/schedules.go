package jobs

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// ScheduleFolder is where the schedules of a stack are.
const ScheduleFolder = "schedules"

// Schedule is the desired state of a schedule, whatever Temporal's schedule says. Unlike that one it is sealed.
type Schedule struct {
	deployments.ScheduledInput
	// Made is when it was created: intervals count from then on.
	Made time.Time `json:"made"`
	// Since is when it was created or last resumed: runs that were due before it do not count.
	Since time.Time `json:"since"`
	// Paused is set by a person, or by a run that failed.
	Paused bool `json:"paused,omitempty"`
	// RunRequested is when a person requested a run that has not started yet.
	RunRequested time.Time `json:"asked,omitzero"`
	// Run is the last run that was admitted; Due is the due time of the last run that nobody had requested.
	Run string    `json:"run,omitempty"`
	Due time.Time `json:"due,omitzero"`
}

// PutSchedule stores a new schedule.
func (s *Store) PutSchedule(ctx context.Context, w Schedule) error {
	n := w.Schedule.Name
	return s.stacks.PutJSON(ctx, n.StackName, stackobjects.Key(n.StackName, ScheduleFolder, n.Name), w)
}

// DeleteSchedule removes a schedule, if there is one.
func (s *Store) DeleteSchedule(ctx context.Context, n deployments.ScheduleName) error {
	err := s.sealed.Objects.Delete(ctx, stackobjects.Key(n.StackName, ScheduleFolder, n.Name))
	if errors.Is(err, bucket.ErrAbsent) {
		return nil
	}
	return bucket.Failed(err, "remove the schedule "+n.String())
}

// ScheduleNames returns the names of a stack's schedules, sorted.
func (s *Store) ScheduleNames(ctx context.Context, stack deployments.StackName) ([]deployments.ScheduleName, error) {
	folder := stackobjects.Key(stack, ScheduleFolder) + "/"
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: folder})
	if err != nil {
		return nil, bucket.Failed(err, "list the schedules of "+stack.String())
	}
	var names []deployments.ScheduleName
	for _, key := range l.Keys {
		n := deployments.ScheduleName{StackName: stack, Name: strings.TrimPrefix(key, folder)}
		if n.Validate() == nil {
			names = append(names, n)
		}
	}
	return names, nil
}

// Schedule returns a schedule; CodeNotFound when there is none.
func (s *Store) Schedule(ctx context.Context, n deployments.ScheduleName) (Schedule, error) {
	w, _, err := s.getSchedule(ctx, n)
	return w, err
}

// ChangeSchedule changes a schedule by compare-and-swap; CodeNotFound when there is none.
func (s *Store) ChangeSchedule(
	ctx context.Context, n deployments.ScheduleName, change func(*Schedule) error,
) (Schedule, error) {
	key := stackobjects.Key(n.StackName, ScheduleFolder, n.Name)
	for {
		w, tag, err := s.getSchedule(ctx, n)
		if err != nil {
			return w, err
		}
		if err := change(&w); err != nil {
			return w, err
		}
		err = s.stacks.PutIf(ctx, n.StackName, key, w, bucket.Condition{Tag: tag})
		if !errors.Is(err, bucket.ErrChanged) {
			return w, err
		}
	}
}

// getSchedule also returns the tag of the object.
func (s *Store) getSchedule(
	ctx context.Context, n deployments.ScheduleName,
) (w Schedule, tag string, err error) {
	key := stackobjects.Key(n.StackName, ScheduleFolder, n.Name)
	tag, err = s.stacks.GetJSON(ctx, n.StackName, key, &w)
	if errors.Is(err, bucket.ErrAbsent) {
		return w, "", deployments.Errorf(deployments.CodeNotFound, "there is no schedule %s", n)
	}
	if err != nil {
		return w, "", err
	}
	if w.Schedule.Name != n {
		return w, "", deployments.Errorf(deployments.CodeInvalid, "what is stored as the schedule %s is of %s, so it "+
			"is refused", n, w.Schedule.Name)
	}
	return w, tag, nil
}
