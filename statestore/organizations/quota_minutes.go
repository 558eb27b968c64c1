package organizations

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// minutesKey is how long workers have hosted the updates of an organization.
func minutesKey(organization string) string { return QuotaFolder + organization + "/minutes" }

// minutes is the content of quotas/ORG/minutes.
type minutes struct {
	// Days has the time by the day (UTC) on which the updates ended: those that still count.
	Days map[string]time.Duration `json:"days"`
	// Counted are the updates that were counted last: the activity that counts one may run more than once.
	Counted []string `json:"counted"`
}

// countedKept is how many updates minutes.Counted has: more than end while one end is repeated.
const countedKept = 200

// sum returns the whole minutes that count at a time.
func (m minutes) sum(now time.Time) int64 {
	total := time.Duration(0)
	for day, d := range m.Days {
		if day > lastDay(now) {
			total += d
		}
	}
	return int64(total / time.Minute)
}

// lastDay is the latest day that does not count any more at a time.
func lastDay(now time.Time) string {
	return now.UTC().AddDate(0, 0, -deployments.QuotaDays).Format(time.DateOnly)
}

func (s *Store) workerMinutes(ctx context.Context, organization string) (int64, error) {
	m, _, err := s.readMinutes(ctx, organization)
	return m.sum(s.sealed.Now()), err
}

// readMinutes reads the minutes of an organization; none when they cannot be read, because whoever wrote such an object
// can also remove it.
func (s *Store) readMinutes(ctx context.Context, organization string) (m minutes, c bucket.Condition, err error) {
	c.Tag, err = s.sealed.GetJSON(ctx, minutesKey(organization), &m)
	switch {
	case errors.Is(err, bucket.ErrAbsent):
		return minutes{}, bucket.Condition{Absent: true}, nil
	case bucket.Unreadable(err) != nil:
		return minutes{}, bucket.Condition{}, nil
	}
	return m, c, err
}

// CountMinutes counts the time for which a worker has hosted an update or a preview, once, while the minutes of its
// organization are limited.
func (s *Store) CountMinutes(ctx context.Context, u deployments.UpdateName, hosted time.Duration) error {
	_, bounded, err := s.Limit(ctx, u.Organization, deployments.LimitWorkerMinutes)
	if bucket.Unreadable(err) != nil { // nothing is lost for it: the update ends
		return nil
	}
	if err != nil || !bounded || hosted <= 0 {
		return err
	}
	for {
		m, condition, err := s.readMinutes(ctx, u.Organization)
		if err != nil || slices.Contains(m.Counted, u.String()) {
			return err
		}
		m.add(u, hosted, s.sealed.Now())
		if err = s.sealed.PutJSON(ctx, minutesKey(u.Organization), m, condition); !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
}

func (m *minutes) add(u deployments.UpdateName, hosted time.Duration, now time.Time) {
	if m.Days == nil {
		m.Days = map[string]time.Duration{}
	}
	for day := range m.Days {
		if day <= lastDay(now) {
			delete(m.Days, day)
		}
	}
	m.Days[now.UTC().Format(time.DateOnly)] += hosted
	m.Counted = append(m.Counted, u.String())
	m.Counted = m.Counted[max(0, len(m.Counted)-countedKept):]
}
