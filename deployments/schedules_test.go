package deployments_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

var (
	nightly = deployments.ScheduleName{StackName: dev, Name: "nightly"}
	noon    = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
)

func TestAScheduleThatCanRunIsValid(t *testing.T) {
	for name, s := range map[string]deployments.Schedule{
		"an interval":           {Kind: deployments.ScheduleUpdate, Every: time.Minute},
		"a cron expression":     {Kind: deployments.ScheduleDrift, Cron: "CRON_TZ=Europe/Berlin 0 3 * * *"},
		"a time":                {Kind: deployments.ScheduleDestroy, At: noon},
		"a check that remedies": {Kind: deployments.ScheduleDrift, Every: time.Hour, Remediate: true},
		"who made it":           {Kind: deployments.ScheduleUpdate, Every: time.Hour, Initiator: "ann@host"},
	} {
		s.Name = nightly
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAScheduleThatCannotRunIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*deployments.Schedule){
		"no name":                 func(s *deployments.Schedule) { s.Name.Name = "" },
		"a name with a slash":     func(s *deployments.Schedule) { s.Name.Name = "a/b" },
		"no stack":                func(s *deployments.Schedule) { s.Name.Stack = "" },
		"no kind":                 func(s *deployments.Schedule) { s.Kind = "" },
		"a kind of an update":     func(s *deployments.Schedule) { s.Kind = "up" },
		"no time":                 func(s *deployments.Schedule) { s.Every = 0 },
		"two times":               func(s *deployments.Schedule) { s.At = noon },
		"three times":             func(s *deployments.Schedule) { s.At, s.Cron = noon, "@daily" },
		"an interval too short":   func(s *deployments.Schedule) { s.Every = time.Minute - 1 },
		"a negative interval":     func(s *deployments.Schedule) { s.Every = -time.Hour },
		"an update that remedies": func(s *deployments.Schedule) { s.Remediate = true },
		"a long cron expression": func(s *deployments.Schedule) {
			s.Every, s.Cron = 0, strings.Repeat("0,", 600)
		},
		"a cron expression with an escape": func(s *deployments.Schedule) { s.Every, s.Cron = 0, "\x1b[2J" },
		"an initiator with an escape":      func(s *deployments.Schedule) { s.Initiator = "\x1b[2J" },
	} {
		s := deployments.Schedule{Name: nightly, Kind: deployments.ScheduleUpdate, Every: time.Hour}
		spoil(&s)
		if err := s.Validate(); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheRunOfAScheduleIsReadFromItsWorkflow(t *testing.T) {
	id := deployments.ScheduleID(nightly) + noon.Format("-2006-01-02T15:04:05Z") // as Temporal calls it
	if n, due, err := deployments.ScheduleOfRun(id); err != nil || n != nightly || !due.Equal(noon) {
		t.Errorf("%s is the run of %s at %s, %v", id, n, due, err)
	}
	const time = "-2026-03-04T12:00:00Z"
	for _, id := range []string{
		"", "scheduled/", time, "scheduled/" + time, "scheduled/o/p/s" + time, "scheduled/o/p/s/n",
		"scheduled/o/p/s/n/m" + time,
		"update/o/p/s/n" + time, "scheduled/o/p/s/../n" + time, "scheduled/o/p/s/n-2026-13-04T12:00:00Z",
		"scheduled/o//s/n" + time,
	} {
		if n, due, err := deployments.ScheduleOfRun(id); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%q is the run of %s at %s, %v", id, n, due, err)
		}
	}
}

func TestAScheduleSaysWhenItRuns(t *testing.T) {
	for want, s := range map[string]deployments.Schedule{
		"every 6h0m0s": {Every: 6 * time.Hour}, "0 3 * * *": {Cron: "0 3 * * *"}, "once": {At: noon},
	} {
		if got := s.When(); got != want {
			t.Errorf("it runs %q, not %q", got, want)
		}
	}
}
