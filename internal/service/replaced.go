package service

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
)

// ReplaceSchedule gives a schedule other times or another effect; it stays paused if it is. The bucket has the new
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
	if err := s.store.PutSchedule(ctx, wanted); err != nil {
		return err
	}
	o := optionsOf(wanted.ScheduledInput, queue, wanted.Made)
	changed := client.Schedule{
		Action: o.Action, Spec: &o.Spec,
		Policy: &client.SchedulePolicies{Overlap: o.Overlap, CatchupWindow: o.CatchupWindow,
			PauseOnFailure: o.PauseOnFailure},
		State: &client.ScheduleState{Note: d.Schedule.State.Note, Paused: o.Paused,
			LimitedActions: o.RemainingActions > 0, RemainingActions: o.RemainingActions},
	}
	err = s.handle(ctx, sched.Name).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			return &client.ScheduleUpdate{Schedule: &changed, TypedSearchAttributes: &o.TypedSearchAttributes}, nil
		},
	})
	return unknownSchedule(sched.Name, notPossible("change the schedule", err))
}
