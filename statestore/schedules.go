package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// scheduleFolder is where the schedules of a stack are.
const scheduleFolder = "schedules"

// DesiredSchedule is the desired state of a schedule, whatever Temporal's schedule says. Unlike that one it is sealed.
type DesiredSchedule struct {
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
func (s *Store) PutSchedule(ctx context.Context, w DesiredSchedule) error {
	n := w.Schedule.Name
	return s.putJSON(ctx, n.StackName, stackKey(n.StackName, scheduleFolder, n.Name), w)
}

// DeleteSchedule removes a schedule, if there is one.
func (s *Store) DeleteSchedule(ctx context.Context, n deployments.ScheduleName) error {
	err := s.objects.Delete(ctx, stackKey(n.StackName, scheduleFolder, n.Name))
	if errors.Is(err, bucket.ErrAbsent) {
		return nil
	}
	return bucket.Failed(err, "remove the schedule "+n.String())
}

// ScheduleNames returns the names of a stack's schedules, sorted.
func (s *Store) ScheduleNames(ctx context.Context, stack deployments.StackName) ([]deployments.ScheduleName, error) {
	folder := stackKey(stack, scheduleFolder) + "/"
	l, err := s.objects.List(ctx, bucket.Query{Prefix: folder})
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
func (s *Store) Schedule(ctx context.Context, n deployments.ScheduleName) (DesiredSchedule, error) {
	w, _, err := s.getSchedule(ctx, n)
	return w, err
}

// ChangeSchedule changes a schedule by compare-and-swap; CodeNotFound when there is none.
func (s *Store) ChangeSchedule(
	ctx context.Context, n deployments.ScheduleName, change func(*DesiredSchedule) error,
) (DesiredSchedule, error) {
	key := stackKey(n.StackName, scheduleFolder, n.Name)
	for {
		w, tag, err := s.getSchedule(ctx, n)
		if err != nil {
			return w, err
		}
		if err := change(&w); err != nil {
			return w, err
		}
		plain, err := json.Marshal(w)
		if err != nil {
			return w, deployments.Errorf(deployments.CodeInternal, "write %s: %w", key, err)
		}
		r, err := s.stackKeysOf(ctx, n.StackName)
		if err != nil {
			return w, err
		}
		_, err = s.objects.Put(ctx, key, r.box.Seal(plain, sealContext(n.StackName, key)), bucket.Condition{Tag: tag})
		if !errors.Is(err, bucket.ErrChanged) {
			return w, bucket.Failed(err, "write "+key)
		}
	}
}

// getSchedule also returns the tag of the object.
func (s *Store) getSchedule(
	ctx context.Context, n deployments.ScheduleName,
) (w DesiredSchedule, tag string, err error) {
	key := stackKey(n.StackName, scheduleFolder, n.Name)
	plain, tag, err := s.getTagged(ctx, n.StackName, key)
	if errors.Is(err, bucket.ErrAbsent) {
		return w, "", deployments.Errorf(deployments.CodeNotFound, "there is no schedule %s", n)
	}
	if err != nil {
		return w, "", err
	}
	if err := json.Unmarshal(plain, &w); err != nil {
		return w, "", bucket.Damaged(key, err)
	}
	if w.Schedule.Name != n {
		return w, "", deployments.Errorf(deployments.CodeInvalid, "what is stored as the schedule %s is of %s, so it "+
			"is refused", n, w.Schedule.Name)
	}
	return w, tag, nil
}
