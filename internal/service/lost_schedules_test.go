package service

import (
	"errors"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/jobs"
)

// want stores what is wanted of a schedule.
func want(t *testing.T, s *Service, name string, change func(*jobs.Schedule)) deployments.ScheduleName {
	t.Helper()
	n := deployments.ScheduleName{StackName: dev, Name: name}
	w := jobs.Schedule{Made: time.Now().Add(-time.Hour), ScheduledInput: deployments.ScheduledInput{
		Schedule: deployments.Schedule{Name: n, Kind: deployments.ScheduleDrift, Every: time.Hour}}}
	change(&w)
	must(t, s.store.Jobs.PutSchedule(t.Context(), w))
	return n
}

func TestAScheduleThatTemporalHasLostIsMadeAgainByWhatLooksForIt(t *testing.T) {
	for name, look := range map[string]func(*Service, deployments.ScheduleName) error{
		"list": func(s *Service, n deployments.ScheduleName) error {
			list, err := s.Schedules(t.Context(), n.StackName)
			if err == nil && (len(list) != 1 || list[0].Name != n || list[0].Note != "") {
				t.Errorf("there are %+v", list)
			}
			return err
		},
		"status": func(s *Service, n deployments.ScheduleName) error {
			page, err := s.Statuses(t.Context(), everyone, deployments.StatusQuery{})
			if err == nil && (len(page.Stacks) != 1 || len(page.Stacks[0].Schedules) != 1 ||
				len(page.Stacks[0].Needs()) != 0) {
				t.Errorf("the status is %+v", page.Stacks)
			}
			return err
		},
		"show": func(s *Service, n deployments.ScheduleName) error {
			sched, err := s.Schedule(t.Context(), n)
			if sched.Note != "" || sched.Every != time.Hour {
				t.Errorf("it is shown as %+v", sched)
			}
			return err
		},
		"runs": func(s *Service, n deployments.ScheduleName) error {
			_, err := s.ScheduleRuns(t.Context(), n, 9)
			return err
		},
		"run": func(s *Service, n deployments.ScheduleName) error { return s.RunSchedule(t.Context(), n) },
		"pause": func(s *Service, n deployments.ScheduleName) error {
			return s.PauseSchedule(t.Context(), n, true, "bob")
		},
		"resume": func(s *Service, n deployments.ScheduleName) error {
			return s.PauseSchedule(t.Context(), n, false, "bob")
		},
	} {
		s, f := newFake(t)
		n := want(t, s, "nightly", func(w *jobs.Schedule) { w.ID = "wanted" })
		want(t, s, "has-run", func(w *jobs.Schedule) {
			w.Schedule.Every, w.Schedule.At, w.Due = 0, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)
		})
		if err := look(s, n); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := f.schedules[deployments.ScheduleID(n)]
		if d == nil || len(f.schedules) != 1 || d.Schedule.State.Paused != (name == "pause") {
			t.Errorf("after %s, Temporal has %+v", name, f.schedules)
			continue
		}
		var in deployments.ScheduledInput
		payload := d.Schedule.Action.(*client.ScheduleWorkflowAction).Args[0].(*commonpb.Payload)
		must(t, converter.GetDefaultDataConverter().FromPayload(payload, &in))
		if in.ID != "wanted" || in.Schedule.Name != n { // by which its runs are admitted
			t.Errorf("after %s it runs with %+v", name, in)
		}
	}
}

func TestAScheduleThatTemporalHasLostIsMadeAgainPausedIfItWasPaused(t *testing.T) {
	s, f := newFake(t)
	n := want(t, s, "nightly", func(w *jobs.Schedule) { w.Paused = true })
	sched, err := s.Schedule(t.Context(), n)
	must(t, err)
	if !sched.Paused || sched.Note != "it was paused when Temporal lost it" ||
		!f.schedules[deployments.ScheduleID(n)].Schedule.State.Paused {
		t.Errorf("it is %+v", sched)
	}
	if err := s.RenameStack(t.Context(), deployments.RenameRequest{From: dev, To: dev}); deployments.CodeOf(err) !=
		deployments.CodeConflict {
		t.Errorf("its stack is renamed: %v", err)
	}
	must(t, s.RemoveSchedule(t.Context(), n))
	if _, err := s.Schedule(t.Context(), n); !notFound(err) || len(f.schedules) != 0 {
		t.Errorf("it is made again though it was removed: %v, %+v", err, f.schedules)
	}
	if err := s.RemoveSchedule(t.Context(), n); !notFound(err) {
		t.Errorf("it is removed a second time: %v", err)
	}
}

func TestALostScheduleWhoseTimeIsOverSaysWhatToDo(t *testing.T) {
	s, f := newFake(t)
	n := want(t, s, "later", func(w *jobs.Schedule) {
		w.Schedule.Every, w.Schedule.At = 0, time.Now().Add(-time.Minute)
	})
	const note = "Temporal has lost it, and its time is over: create it again, or remove it with " +
		"`deployctl schedule rm later`"
	if sched, err := s.Schedule(t.Context(), n); err != nil || sched.Note != note {
		t.Errorf("it is %+v, %v", sched, err)
	}
	if list, err := s.Schedules(t.Context(), dev); err != nil || len(list) != 1 || list[0].Note != note {
		t.Errorf("there are %+v, %v", list, err)
	}
	page, err := s.Statuses(t.Context(), everyone, deployments.StatusQuery{})
	must(t, err)
	if needs := page.Stacks[0].Needs(); len(needs) != 1 || needs[0] != "schedule later: "+note {
		t.Errorf("what it needs is %q", needs)
	}
	for name, err := range map[string]error{"run": s.RunSchedule(t.Context(), n),
		"pause": s.PauseSchedule(t.Context(), n, true, "bob")} {
		if deployments.CodeOf(err) != deployments.CodeConflict || !strings.HasSuffix(err.Error(), note) {
			t.Errorf("%s is answered %v", name, err)
		}
	}
	if len(f.schedules) != 0 {
		t.Errorf("Temporal has %+v", f.schedules)
	}
	must(t, s.RemoveSchedule(t.Context(), n))
}

func TestALostScheduleThatTemporalDoesNotTakeAnyMoreSaysSo(t *testing.T) {
	s, f := newFake(t)
	n := want(t, s, "nightly", func(*jobs.Schedule) {})
	f.refusal = serviceerror.NewInvalidArgument("the interval is too short")
	sched, err := s.Schedule(t.Context(), n)
	if must(t, err); sched.Note != "Temporal has lost it, and does not take it any more (the interval is too short): "+
		"create it again, or remove it with `deployctl schedule rm nightly`" {
		t.Errorf("it is %+v", sched)
	}
	f.refusal = serviceerror.NewUnavailable("later")
	if _, err := s.Schedule(t.Context(), n); deployments.CodeOf(err) != deployments.CodeUnavailable {
		t.Errorf("without Temporal it is answered %v", err)
	}
}

func TestALostScheduleThatIsNotMadeAgainNowIsShownWithTheOthers(t *testing.T) {
	s, f := newFake(t)
	n := want(t, s, "nightly", func(*jobs.Schedule) {})
	shown := func(why string) {
		t.Helper()
		list, err := s.Schedules(t.Context(), n.StackName)
		if must(t, err); len(list) != 1 || !strings.Contains(list[0].Note, why) ||
			!strings.Contains(list[0].Note, "made again when it is looked for later") || len(f.schedules) != 0 {
			t.Errorf("there are %+v, and in Temporal %+v", list, f.schedules)
		}
	}
	f.refusal = serviceerror.NewPermissionDenied("not now", "")
	shown("not now")
	f.refusal = nil
	must(t, s.store.Organizations.SetMode(t.Context(), deployments.Mode{Kind: deployments.ModeReadOnly, Reason: "a move",
		Until: time.Now().Add(time.Hour)}))
	shown("begins nothing") // a viewer's look writes nothing
}

func TestSchedulesAreCountedByTheirState(t *testing.T) {
	s, f := newFake(t)
	for id, paused := range map[string]bool{"a": false, "b": true, "c": false} {
		f.schedules[id] = &client.ScheduleDescription{Schedule: client.Schedule{State: &client.ScheduleState{Paused: paused}}}
	}
	if active, paused, err := s.CountSchedules(t.Context()); active != 2 || paused != 1 || err != nil {
		t.Errorf("%d are active and %d paused, %v", active, paused, err)
	}
	f.away = errors.New("away")
	if _, _, err := s.CountSchedules(t.Context()); err == nil {
		t.Error("they are counted without Temporal")
	}
}
