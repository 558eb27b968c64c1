package service

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/jobs"
)

// ReplaceSchedule gives a schedule other times or another effect; it stays paused if it is, in the bucket or only in
// Temporal, which pauses a schedule by itself and for those who use its own tools. The bucket has the new
// schedule first: until Temporal has it, too, no run is admitted, and the same call again completes it.
func (s *Service) ReplaceSchedule(ctx context.Context, sched deployments.Schedule) error {
	d, err := s.describe(ctx, sched.Name)
	if err != nil {
		return err
	}
	sched.Paused = d.Schedule.State.Paused
	wanted, queue, err := s.newSchedule(ctx, sched)
	if err != nil {
		return err
	}
	if wanted, err = s.replaceWanted(ctx, wanted); err != nil {
		return err
	}
	o := optionsOf(wanted.ScheduledInput, queue, wanted.Made)
	err = s.handle(ctx, sched.Name).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			changed := client.Schedule{
				Action: o.Action, Spec: &o.Spec,
				Policy: &client.SchedulePolicies{Overlap: o.Overlap, CatchupWindow: o.CatchupWindow,
					PauseOnFailure: o.PauseOnFailure},
				State: &client.ScheduleState{Note: in.Description.Schedule.State.Note,
					Paused:         wanted.Paused || in.Description.Schedule.State.Paused,
					LimitedActions: o.RemainingActions > 0, RemainingActions: o.RemainingActions},
			}
			return &client.ScheduleUpdate{Schedule: &changed, TypedSearchAttributes: &o.TypedSearchAttributes}, nil
		},
	})
	if err != nil {
		return unknownSchedule(sched.Name, notPossible("change the schedule", err))
	}
	return s.repeatPause(ctx, wanted)
}

// replaceWanted writes what is wanted of a schedule in the place of what was, and returns it. Whether it is paused
// stays as it is there: somebody, or a run that failed, may have paused it since it was read. So does its last run,
// which may still fail.
func (s *Service) replaceWanted(
	ctx context.Context, wanted jobs.Schedule,
) (jobs.Schedule, error) {
	written, err := s.store.Jobs.ChangeSchedule(ctx, wanted.Schedule.Name, func(w *jobs.Schedule) error {
		paused, run := w.Paused, w.Run
		*w = wanted
		w.Paused, w.Schedule.Paused, w.Run = paused, paused, run
		return nil
	})
	if err != nil && deployments.CodeOf(err) == deployments.CodeNotFound { // made by an earlier build
		return wanted, s.store.Jobs.PutSchedule(ctx, wanted)
	}
	return written, err
}

// repeatPause pauses or resumes Temporal's schedule if that was done since the bucket was written: Temporal takes
// updates whatever they were made from. PauseSchedule writes the bucket first. So one that is not seen here changes
// Temporal's schedule later than this does.
func (s *Service) repeatPause(ctx context.Context, written jobs.Schedule) error {
	for {
		is, err := s.store.Jobs.Schedule(ctx, written.Schedule.Name)
		if err != nil || is.Paused == written.Paused {
			return err
		}
		handle := s.handle(ctx, written.Schedule.Name)
		if is.Paused {
			err = failure("pause the schedule",
				handle.Pause(ctx, client.SchedulePauseOptions{Note: "paused while it was changed"}))
		} else {
			err = failure("resume the schedule",
				handle.Unpause(ctx, client.ScheduleUnpauseOptions{Note: "resumed while it was changed"}))
		}
		if err != nil {
			return unknownSchedule(written.Schedule.Name, err)
		}
		written = is
	}
}
