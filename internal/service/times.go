package service

import (
	"strings"
	"time"
	_ "time/tzdata" // schedules have time zones, which the machine may lack

	"github.com/robfig/cron/v3"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/jobs"
)

// dueAt reports whether the desired schedule is due at a time, which must be a whole second.
func dueAt(w *jobs.Schedule, at time.Time) bool {
	switch sched := w.Schedule; {
	case sched.Every != 0:
		every := int64(sched.Every / time.Second)
		return at.Unix()%every == int64(offsetOf(sched.Every, w.Made)/time.Second)%every
	case sched.Cron != "":
		times, err := cronTimes(sched.Cron)
		return err == nil && times.Next(at.Add(-time.Second)).Equal(at)
	default:
		return at.Equal(sched.At.Truncate(time.Second))
	}
}

// cronTimes parses a cron expression: five fields, or @hourly, @daily, @weekly, @monthly or @yearly, in UTC or after
// CRON_TZ=ZONE in that zone. Temporal accepts every such expression with the same times.
func cronTimes(expression string) (cron.Schedule, error) {
	text := strings.TrimSpace(expression)
	switch {
	case strings.HasPrefix(text, "@every"):
		return nil, deployments.Errorf(deployments.CodeInvalid, "the cron expression %q is an interval: use --every",
			expression)
	case !strings.HasPrefix(text, "TZ=") && !strings.HasPrefix(text, "CRON_TZ="):
		text = "CRON_TZ=UTC " + text
	case !strings.Contains(text, " "):
		return nil, deployments.Errorf(deployments.CodeInvalid, "the cron expression %q has a time zone and no fields",
			expression)
	}
	times, err := cron.ParseStandard(text)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the cron expression %q: %w", expression, err)
	}
	return times, nil
}

// timesOf returns the times of a schedule: intervals count from now on, which spreads those of many stacks.
func timesOf(sched deployments.Schedule, now time.Time) client.ScheduleSpec {
	switch {
	case sched.Every != 0:
		return client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{
			{Every: sched.Every, Offset: offsetOf(sched.Every, now)}}, StartAt: now}
	case sched.Cron != "":
		return client.ScheduleSpec{CronExpressions: []string{sched.Cron}, Jitter: jitter, StartAt: now}
	}
	at, exactly := sched.At.UTC(), func(n int) []client.ScheduleRange { return []client.ScheduleRange{{Start: n}} }
	return client.ScheduleSpec{Calendars: []client.ScheduleCalendarSpec{{
		Year: exactly(at.Year()), Month: exactly(int(at.Month())), DayOfMonth: exactly(at.Day()),
		Hour: exactly(at.Hour()), Minute: exactly(at.Minute()), Second: exactly(at.Second()),
	}}}
}

// offsetOf returns the offset of a schedule within its interval, from when it was created.
func offsetOf(every time.Duration, made time.Time) time.Duration {
	return (time.Duration(made.UnixNano()) % every).Truncate(time.Second)
}
