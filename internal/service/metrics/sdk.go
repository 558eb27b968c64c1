package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
)

// SDK takes what Temporal's SDK counts of itself: temporal_request, temporal_activity_schedule_to_start_latency and
// others.
func (m *Metrics) SDK() client.MetricsHandler { return handler{series: m.sdk} }

// handler is a client.MetricsHandler with some tags.
type handler struct {
	series *series
	tags   prometheus.Labels
}

func (h handler) WithTags(tags map[string]string) client.MetricsHandler {
	all := prometheus.Labels{}
	maps.Copy(all, h.tags)
	for name, value := range tags {
		all[strings.ReplaceAll(name, "-", "_")] = value
	}
	return handler{h.series, all}
}

func (h handler) Counter(name string) client.MetricsCounter {
	c := find(h, name, func() prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: h.tags})
	})
	return adder{c}
}

func (h handler) Gauge(name string) client.MetricsGauge {
	g := find(h, name, func() prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: h.tags})
	})
	return setter{g}
}

func (h handler) Timer(name string) client.MetricsTimer {
	name += "_seconds"
	t := find(h, name, func() prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: h.tags,
			Buckets: brief})
	})
	return recorder{t}
}

const help = "Counted by Temporal's SDK."

type (
	adder    struct{ prometheus.Counter }
	setter   struct{ prometheus.Gauge }
	recorder struct{ prometheus.Histogram }
)

func (a adder) Inc(n int64)               { a.Add(float64(n)) }
func (s setter) Update(v float64)         { s.Set(v) }
func (r recorder) Record(d time.Duration) { r.Observe(d.Seconds()) }

// mostSeries bounds the series that are shown. Their labels have types of workflows, which anybody who can use the
// namespace makes up.
const mostSeries = 10_000

// series are metrics that are made as they are asked for: the SDK gives one name different sets of labels, which a
// vector does not allow.
type series struct {
	mu  sync.Mutex
	all map[string]prometheus.Metric // by name and labels
}

func newSeries() *series { return &series{all: map[string]prometheus.Metric{}} }

// find gives the metric of a name with the handler's tags, and makes it if it is new.
func find[M prometheus.Metric](h handler, name string, fresh func() M) M {
	var key strings.Builder
	key.WriteString(name)
	for _, label := range slices.Sorted(maps.Keys(h.tags)) {
		key.WriteString("\x00" + label + "\x00" + h.tags[label])
	}
	h.series.mu.Lock()
	defer h.series.mu.Unlock()
	if known, ok := h.series.all[key.String()].(M); ok {
		return known
	}
	m := fresh()
	if len(h.series.all) < mostSeries {
		h.series.all[key.String()] = m
	}
	return m
}

// Describe describes nothing, which makes the series an unchecked collector: nobody knows beforehand what there will
// be.
func (s *series) Describe(chan<- *prometheus.Desc) {}

// Collect sends what there is.
func (s *series) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.all {
		to <- m
	}
}
