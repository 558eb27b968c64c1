package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// told is a gauge whose value another part of the process tells when it is asked; it is not shown while that tells
// nothing.
type told struct {
	desc *prometheus.Desc
	tell atomic.Pointer[func() (value float64, known bool)]
}

func newTold(name, help string) *told { return &told{desc: prometheus.NewDesc(name, help, nil, nil)} }

// Describe names the gauge.
func (t *told) Describe(to chan<- *prometheus.Desc) { to <- t.desc }

// Collect asks for the value.
func (t *told) Collect(to chan<- prometheus.Metric) {
	tell := t.tell.Load()
	if tell == nil {
		return
	}
	if value, known := (*tell)(); known {
		to <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, value)
	}
}

// Ready takes what tells whether the process can work.
func (m *Metrics) Ready(ready func() bool) {
	tell := func() (float64, bool) {
		if ready() {
			return 1, true
		}
		return 0, true
	}
	m.ready.tell.Store(&tell)
}

// CertificateEnds takes what tells when the certificate in use expires.
func (m *Metrics) CertificateEnds(ends func() (time.Time, error)) {
	tell := func() (float64, bool) {
		at, err := ends()
		return float64(at.Unix()), err == nil
	}
	m.certificate.tell.Store(&tell)
}

// FreeDisk takes what tells how many bytes may still be written to the disk with the files of programs.
func (m *Metrics) FreeDisk(free func() (bytes uint64, known bool)) {
	tell := func() (float64, bool) {
		bytes, known := free()
		return float64(bytes), known
	}
	m.freeDisk.tell.Store(&tell)
}

// Spans shows what became of the spans of the process.
func (m *Metrics) Spans(counts func() (exported, dropped, failed int64)) {
	m.registry.MustRegister(&spanCounts{desc: prometheus.NewDesc("deployctl_spans_total",
		"Spans that were exported, dropped because the queue was full, and lost with a failed export.", []string{"result"},
		nil), counts: counts})
}

// spanCounts counts spans.
type spanCounts struct {
	desc   *prometheus.Desc
	counts func() (exported, dropped, failed int64)
}

// Describe names the counter.
func (s *spanCounts) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

// Collect shows the counts.
func (s *spanCounts) Collect(to chan<- prometheus.Metric) {
	exported, dropped, failed := s.counts()
	for result, n := range map[string]int64{"exported": exported, "dropped": dropped, "failed": failed} {
		to <- prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, float64(n), result)
	}
}

// AuditFailed counts entries that could not be written to the audit log.
func (m *Metrics) AuditFailed(entries int) { m.audit.Add(float64(entries)) }

const (
	// schedulesFor is how long a count of the schedules is shown before they are counted again.
	schedulesFor = time.Minute
	// schedulesPatience is how long counting them may take.
	schedulesPatience = 5 * time.Second
)

// CountSchedules counts schedules: all that are active, and those that are paused.
type CountSchedules func(ctx context.Context) (active, paused int, err error)

// scheduleCounts shows how many schedules there are; nothing while they cannot be counted.
type scheduleCounts struct {
	desc *prometheus.Desc

	mu             sync.Mutex
	count          CountSchedules
	counted        time.Time
	active, paused int
	err            error
}

// Schedules takes what counts the schedules.
func (m *Metrics) Schedules(count CountSchedules) {
	m.schedules.mu.Lock()
	defer m.schedules.mu.Unlock()
	m.schedules.count = count
}

// Describe names the gauge.
func (s *scheduleCounts) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

// Collect counts the schedules, unless that was done a moment ago.
func (s *scheduleCounts) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		return
	}
	if s.counted.IsZero() || time.Since(s.counted) >= schedulesFor {
		ctx, cancel := context.WithTimeout(context.Background(), schedulesPatience)
		defer cancel()
		s.active, s.paused, s.err = s.count(ctx)
		s.counted = time.Now()
	}
	if s.err != nil {
		return
	}
	for state, n := range map[string]int{"active": s.active, "paused": s.paused} {
		to <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(n), state)
	}
}
