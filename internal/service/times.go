package service

import (
	"strings"
	"time"
	_ "time/tzdata" // schedules have time zones, which the machine may lack

	"github.com/robfig/cron/v3"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// dueAt reports whether the desired schedule is due at a time, which must be a whole second.
func dueAt(w *statestore.DesiredSchedule, at time.Time) bool {
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
