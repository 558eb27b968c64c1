package service

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/jobs"
)

func (s fakeSchedule) Update(_ context.Context, o client.ScheduleUpdateOptions) error {
	d, err := s.Describe(context.Background())
	if err != nil {
		return err
	}
	next, err := o.DoUpdate(client.ScheduleUpdateInput{Description: *d})
	if err != nil {
		return err
	}
	if s.f.updating != nil {
		s.f.updating()
	}
	action := *next.Schedule.Action.(*client.ScheduleWorkflowAction)
	payload, err := converter.GetDefaultDataConverter().ToPayload(action.Args[0])
	if err != nil {
		return err
	}
	action.Args = []any{payload}
	return s.change(func(d *client.ScheduleDescription) {
		d.Schedule.Action, d.Schedule.State = &action, next.Schedule.State
	})
}

// A schedule that is changed and paused at the same time is both, whichever of the two writes first.
func TestAScheduleThatIsPausedWhileItIsChangedStaysPaused(t *testing.T) {
	for name, pause := range map[string]func(s *Service, f *fakeTemporal) error{
		"before the bucket is written": func(s *Service, _ *fakeTemporal) error { // and Temporal does not know of it yet
			_, err := s.store.Jobs.ChangeSchedule(t.Context(), hourly.Name, func(w *jobs.Schedule) error {
				w.Paused = true
				return nil
			})
			return err
		},
		"before Temporal is written": func(s *Service, f *fakeTemporal) error {
			f.updating = func() { must(t, s.PauseSchedule(t.Context(), hourly.Name, true, "bob")) }
			return nil
		},
	} {
		s, f := newFake(t)
		settled(t, s, deployments.SecretsProvider{})
		must(t, s.CreateSchedule(t.Context(), hourly))
		must(t, pause(s, f))
		changed := hourly
		changed.Every = 2 * time.Hour
		must(t, s.ReplaceSchedule(t.Context(), changed))
		wanted, err := s.store.Jobs.Schedule(t.Context(), hourly.Name)
		must(t, err)
		if is := f.schedules[deployments.ScheduleID(hourly.Name)].Schedule.State.Paused; !wanted.Paused || !is ||
			wanted.Schedule.Every != changed.Every {
			t.Errorf("%s: the bucket has %+v, and Temporal's schedule is paused: %v", name, wanted, is)
		}
	}
}

func TestAScheduleThatIsResumedWhileItIsChangedStaysResumed(t *testing.T) {
	s, f := newFake(t)
	settled(t, s, deployments.SecretsProvider{})
	must(t, s.CreateSchedule(t.Context(), hourly))
	must(t, s.PauseSchedule(t.Context(), hourly.Name, true, "ann"))
	f.updating = func() { must(t, s.PauseSchedule(t.Context(), hourly.Name, false, "bob")) }
	must(t, s.ReplaceSchedule(t.Context(), hourly))
	wanted, err := s.store.Jobs.Schedule(t.Context(), hourly.Name)
	must(t, err)
	if is := f.schedules[deployments.ScheduleID(hourly.Name)].Schedule.State.Paused; wanted.Paused || is {
		t.Errorf("paused in the bucket: %v, in Temporal: %v", wanted.Paused, is)
	}
}

// Temporal pauses a schedule by itself after a failed run, and for those who use its own tools.
func TestAScheduleThatOnlyTemporalHasPausedStaysPaused(t *testing.T) {
	s, f := newFake(t)
	settled(t, s, deployments.SecretsProvider{})
	must(t, s.CreateSchedule(t.Context(), hourly))
	is := f.schedules[deployments.ScheduleID(hourly.Name)]
	is.Schedule.State.Paused, is.Schedule.State.Note = true, "by hand"
	must(t, s.ReplaceSchedule(t.Context(), hourly))
	if state := is.Schedule.State; !state.Paused || state.Note != "by hand" {
		t.Errorf("it is %+v", state)
	}
}

func TestARunPausesTheScheduleThatWasChangedSinceItBegan(t *testing.T) {
	s, _ := newFake(t)
	settled(t, s, deployments.SecretsProvider{})
	must(t, s.CreateSchedule(t.Context(), hourly))
	run := workflow.Execution{ID: deployments.ScheduleID(hourly.Name) + "-2026-03-04T12:00:00Z", RunID: "run"}
	_, err := s.store.Jobs.ChangeSchedule(t.Context(), hourly.Name, func(w *jobs.Schedule) error {
		w.Run = run.RunID
		return nil
	})
	must(t, err)
	must(t, s.ReplaceSchedule(t.Context(), hourly))
	must(t, s.ScheduleFailed(t.Context(), run))
	if wanted, err := s.store.Jobs.Schedule(t.Context(), hourly.Name); err != nil || !wanted.Paused {
		t.Errorf("the bucket has %+v, %v", wanted, err)
	}
}
