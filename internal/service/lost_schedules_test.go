package service

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// want stores what is wanted of a schedule.
func want(t *testing.T, s *Service, name string, change func(*statestore.DesiredSchedule)) deployments.ScheduleName {
	t.Helper()
	n := deployments.ScheduleName{StackName: dev, Name: name}
	w := statestore.DesiredSchedule{Made: time.Now().Add(-time.Hour), ScheduledInput: deployments.ScheduledInput{
		Schedule: deployments.Schedule{Name: n, Kind: deployments.ScheduleDrift, Every: time.Hour}}}
	change(&w)
	must(t, s.store.PutSchedule(t.Context(), w))
	return n
}

func TestAScheduleThatTemporalHasLostIsListedWithAWarningAndCanBeRemoved(t *testing.T) {
	s, _ := newFake(t)
	lost := want(t, s, "nightly", func(w *statestore.DesiredSchedule) { w.Paused = true })
	want(t, s, "being-made", func(w *statestore.DesiredSchedule) { w.Made = time.Now() })
	want(t, s, "over", func(w *statestore.DesiredSchedule) {
		w.Schedule.Every, w.Schedule.At, w.Due = 0, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)
	})
	list, err := s.Schedules(t.Context(), dev)
	must(t, err)
	if len(list) != 1 || list[0].Name != lost || list[0].Kind != deployments.ScheduleDrift || !list[0].Paused ||
		!strings.HasPrefix(list[0].Note, "Temporal has lost it, so it does not run: ") {
		t.Fatalf("there are %+v", list)
	}
	page, err := s.Statuses(t.Context(), everyone, deployments.StatusQuery{})
	must(t, err)
	if len(page.Stacks) != 1 || len(page.Stacks[0].Schedules) != 1 || len(page.Stacks[0].Needs()) != 1 ||
		!strings.HasPrefix(page.Stacks[0].Needs()[0], "schedule nightly: Temporal has lost it") {
		t.Errorf("the status is %+v", page.Stacks)
	}
	must(t, s.RemoveSchedule(t.Context(), lost))
	if list, err := s.Schedules(t.Context(), dev); err != nil || len(list) != 0 {
		t.Errorf("there are %+v, %v", list, err)
	}
	if err := s.RemoveSchedule(t.Context(), lost); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("it is removed a second time: %v", err)
	}
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
