package metrics

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

const (
	// quotasEvery is how often is counted what organizations use: each stack is read for that. A count that is older
	// than quotasFor is not shown.
	quotasEvery, quotasFor = 5 * time.Minute, 20 * time.Minute
	// mostOrganizations is how many are shown, those with a quota first.
	mostOrganizations = 1000
)

// CountQuotas describes the quotas of all organizations, and what these use.
type CountQuotas func(ctx context.Context) ([]deployments.QuotaUse, error)

// quotaCounts shows what organizations may use, and what they use. What a count does not have any more is not shown.
type quotaCounts struct {
	limit, used *prometheus.Desc

	mu      sync.Mutex
	last    []deployments.QuotaUse
	counted time.Time
}

func newQuotaCounts() *quotaCounts {
	labels := []string{"organization", "limit"}
	return &quotaCounts{
		limit: prometheus.NewDesc("deployctl_quota_limit", "What an organization may use, where it is limited.", labels, nil),
		used:  prometheus.NewDesc("deployctl_quota_used", "What an organization uses.", labels, nil),
	}
}

// FollowQuotas shows what organizations may use and what they use, until ctx ends.
func (m *Metrics) FollowQuotas(ctx context.Context, count CountQuotas, log *slog.Logger) error {
	for {
		err := panics.Do("counting what organizations use", func() error {
			counting, cancel := context.WithTimeout(ctx, quotasEvery)
			defer cancel()
			list, err := count(counting)
			if err == nil {
				m.quotas.learn(list)
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			log.Warn("what organizations use was not counted for the metrics", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(quotasEvery):
		}
	}
}

// learn keeps what was counted.
func (q *quotaCounts) learn(list []deployments.QuotaUse) {
	slices.SortStableFunc(list, func(a, b deployments.QuotaUse) int {
		return min(1, len(b.Limits)) - min(1, len(a.Limits))
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last, q.counted = list[:min(len(list), mostOrganizations)], time.Now()
}

// Describe names the gauges.
func (q *quotaCounts) Describe(to chan<- *prometheus.Desc) {
	to <- q.limit
	to <- q.used
}

// Collect shows what was counted last.
func (q *quotaCounts) Collect(to chan<- prometheus.Metric) {
	q.mu.Lock()
	last, counted := q.last, q.counted
	q.mu.Unlock()
	if time.Since(counted) >= quotasFor {
		return
	}
	for _, of := range last {
		for limit, n := range of.Limits {
			to <- prometheus.MustNewConstMetric(q.limit, prometheus.GaugeValue, float64(n), of.Organization, string(limit))
		}
		for limit, n := range of.Used {
			to <- prometheus.MustNewConstMetric(q.used, prometheus.GaugeValue, float64(n), of.Organization, string(limit))
		}
	}
}
