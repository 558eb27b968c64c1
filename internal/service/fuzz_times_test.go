package service

import (
	"testing"
	"time"
)

// FuzzCron reads the cron expressions of strangers, and asks for the next times of those that are accepted.
func FuzzCron(f *testing.F) {
	for _, seed := range []string{"0 3 * * *", "@daily", "TZ=Europe/Berlin 30 2 29 2 *", "CRON_TZ= * * * * *",
		"*/5 0-23/2 1,15 * MON-FRI", "TZ=../../etc/passwd 0 0 * * *", "0 0 30 2 *", "@every 1s", "TZ=UTC"} {
		f.Add(seed)
	}
	from := time.Date(2026, 2, 28, 23, 59, 59, 0, time.UTC)
	f.Fuzz(func(t *testing.T, expression string) {
		times, err := cronTimes(expression)
		if err != nil {
			return
		}
		for at, n := times.Next(from), 0; !at.IsZero() && n < 3; at, n = times.Next(at), n+1 {
			if !at.After(from) || at.After(from.AddDate(20, 0, 0)) {
				t.Errorf("%q is due at %s", expression, at)
			}
		}
	})
}
