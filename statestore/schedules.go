package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// scheduleFolder is where the schedules of a stack are.
const scheduleFolder = "schedules"

// DesiredSchedule is what is wanted of a schedule, whatever Temporal says of it. It is sealed, as Temporal's schedules are not.
type DesiredSchedule struct {
	deployments.ScheduledInput
	// Made is when it was made: intervals count from then on.
	Made time.Time `json:"made"`
	// Since is when it was made, or resumed: no run is wanted that was due before.
	Since time.Time `json:"since"`
	// Paused is what was asked for, or what came of a run that failed.
	Paused bool `json:"paused,omitempty"`
	// RunRequested is when it was asked to run at once, and has not done so yet.
	RunRequested time.Time `json:"asked,omitzero"`
	// Run is the last run that was let through, Due when the last one was due that nobody had asked for.
	Run string    `json:"run,omitempty"`
	Due time.Time `json:"due,omitzero"`
}

// PutSchedule stores what is wanted of a new schedule.
func (s *Store) PutSchedule(ctx context.Context, w DesiredSchedule) error {
	n := w.Schedule.Name
	return s.putJSON(ctx, n.StackName, stackKey(n.StackName, scheduleFolder, n.Name), w)
}

// DeleteSchedule forgets a schedule, if there is one.
func (s *Store) DeleteSchedule(ctx context.Context, n deployments.ScheduleName) error {
	err := s.objects.Delete(ctx, stackKey(n.StackName, scheduleFolder, n.Name))
	if errors.Is(err, ErrAbsent) {
		return nil
	}
	return failed(err, "remove the schedule "+n.String())
}

// Schedule returns what is wanted of a schedule; CodeNotFound when nothing is.
func (s *Store) Schedule(ctx context.Context, n deployments.ScheduleName) (DesiredSchedule, error) {
	w, _, err := s.getSchedule(ctx, n)
	return w, err
}

// ChangeSchedule changes what is wanted of a schedule by compare-and-swap; CodeNotFound when nothing is.
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
		_, err = s.objects.Put(ctx, key, r.box.Seal(plain, sealContext(n.StackName, key)), Condition{Tag: tag})
		if !errors.Is(err, ErrChanged) {
			return w, failed(err, "write "+key)
		}
	}
}

// getSchedule also returns the tag of the object.
func (s *Store) getSchedule(ctx context.Context, n deployments.ScheduleName) (w DesiredSchedule, tag string, err error) {
	key := stackKey(n.StackName, scheduleFolder, n.Name)
	plain, tag, err := s.getTagged(ctx, n.StackName, key)
	if errors.Is(err, ErrAbsent) {
		return w, "", deployments.Errorf(deployments.CodeNotFound, "there is no schedule %s", n)
	}
	if err != nil {
		return w, "", err
	}
	if err := json.Unmarshal(plain, &w); err != nil {
		return w, "", damaged(key, err)
	}
	if w.Schedule.Name != n {
		return w, "", deployments.Errorf(deployments.CodeInvalid, "what is stored as the schedule %s is of %s, so it "+
			"is refused", n, w.Schedule.Name)
	}
	return w, tag, nil
}
