package service

import (
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/jobs"
)

func TestARunOfAScheduleIsLetThroughWhenItIsWanted(t *testing.T) {
	made := time.Date(2026, 3, 4, 5, 0, 30, 0, time.UTC)
	due := time.Date(2026, 3, 4, 6, 0, 0, 0, time.UTC)
	hourly := func(change func(*jobs.Schedule)) jobs.Schedule {
		w := jobs.Schedule{Made: made, Since: made}
		w.Schedule.Cron = "0 * * * *"
		if change != nil {
			change(&w)
		}
		return w
	}
	onTime := runOf{id: "this", due: due, started: due.Add(jitter), now: due.Add(jitter)}
	shifted := func(due, started time.Duration) runOf {
		return runOf{id: "this", due: onTime.due.Add(due), started: onTime.due.Add(started),
			now: onTime.due.Add(started)}
	}
	for _, c := range []struct {
		name string
		w    jobs.Schedule
		run  runOf
		want bool
	}{
		{"a run that is due", hourly(nil), onTime, true},
		{"a run that is made up for", hourly(nil), shifted(0, catchupWindow), true},
		{"a run that nobody makes up for any more", hourly(nil), shifted(0, 2*catchupWindow), false},
		{"a run before its time", hourly(nil), shifted(0, -time.Second), false},
		{"a run at another time", hourly(nil), shifted(time.Minute, time.Minute), false},
		{"a run of a time before it was made", hourly(nil), shifted(-time.Hour, 0), false},
		{"a run of the moment when it was made", hourly(func(w *jobs.Schedule) { w.Since = due.Add(1) }), onTime,
			false},
		{"a run of a time before it was resumed", hourly(func(w *jobs.Schedule) {
			w.Since = due.Add(
				10 * time.Minute)
		}), shifted(0, 11*time.Minute), false},
		{"a second run for one time", hourly(func(w *jobs.Schedule) { w.Run, w.Due = "other", due }), onTime,
			false},
		{"a run that goes on", hourly(func(w *jobs.Schedule) { w.Run, w.Due, w.Paused = "this", due, true }),
			onTime, true},
		{"a run of one that is paused", hourly(func(w *jobs.Schedule) { w.Paused = true }), onTime, false},
		{"a run that was asked for", hourly(func(w *jobs.Schedule) { w.Paused, w.RunRequested = true, due }),
			shifted(time.Minute, time.Minute), true},
		{"a run that was asked for long ago", hourly(func(w *jobs.Schedule) {
			w.RunRequested = due.Add(-2 * requestExpiry)
		}), shifted(time.Minute, time.Minute), false},
		{"what happens once, days late", hourly(func(w *jobs.Schedule) {
			w.Schedule.Cron, w.Schedule.At = "",
				due
		}), shifted(0, 72*time.Hour), true},
		{"what happens once, at another time", hourly(func(w *jobs.Schedule) {
			w.Schedule.Cron, w.Schedule.At = "",
				due.Add(1)
		}), shifted(time.Second, time.Minute), false},
	} {
		if err := c.run.take(&c.w); (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		} else if again := (runOf{id: "another", due: c.run.due, started: c.run.started, now: c.run.now}).take(
			&c.w); again == nil {
			t.Errorf("%s: another is let through for the same time", c.name)
		}
	}
}

func TestAnIntervalIsDueAtTheTimesThatTemporalComputes(t *testing.T) {
	for _, every := range []time.Duration{time.Minute, 90 * time.Second, 6 * time.Hour, 7 * 24 * time.Hour} {
		w := jobs.Schedule{Made: now}
		w.Schedule = deployments.Schedule{Every: every}
		at := now.Truncate(time.Second)
		if !dueAt(&w, at) || !dueAt(&w, at.Add(3*every)) || dueAt(&w, at.Add(time.Second)) ||
			dueAt(&w, at.Add(every/2)) {
			t.Errorf("every %s: it is due at other times than Temporal has it run", every)
		}
	}
}

func TestATimeIsOneOfACronExpression(t *testing.T) {
	sunday := time.Date(2026, 3, 1, 6, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		cron string
		at   time.Time
		want bool
	}{
		{"30 6 * * *", sunday, true},
		{"30 6 * * *", sunday.Add(time.Second), false},
		{"*/15 * * * *", sunday, true},
		{"*/20 * * * *", sunday, false},
		{"10/20 * * * *", sunday, true},
		{"0-40/7,29 * * * *", sunday, false},
		{"0-40/7,29-31 * * * *", sunday, true},
		{"30 6 * * MON-FRI", sunday, false},
		{"30 6 * * MON-FRI", sunday.AddDate(0, 0, 5), true},
		{"30 6 * * 0", sunday, true},
		{"30 6 * * */2", sunday.AddDate(0, 0, 6), true},
		{"30 6 */2 * *", sunday, true},
		{"30 6 * mar *", sunday, true},
		{"30 6 * jan-feb *", sunday, false},
		{"CRON_TZ=Europe/Berlin 30 7 * * *", sunday, true},
		{"@weekly", time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), true},
		{"@weekly", sunday, false},
	} {
		w := jobs.Schedule{}
		w.Schedule.Cron = c.cron
		if got := dueAt(&w, c.at); got != c.want {
			t.Errorf("%s at %s: %v", c.cron, c.at, got)
		}
	}
	for _, wrong := range []string{
		"@every 2h", "* *", "0 0 0 * * *", "0 0 * * 7", "CRON_TZ=Nowhere/Else 0 0 * * *", "CRON_TZ=UTC", "TZ=", "",
	} {
		if _, err := cronTimes(wrong); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
