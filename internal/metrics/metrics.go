// Package metrics counts what a process of the service does and shows it to Prometheus: calls of the API, updates,
// steps, and whatever Temporal's SDK counts of itself. No label holds the name of a stack or a resource, so that their
// number stays small and nothing about anybody's infrastructure is shown.
package metrics

import (
	"crypto/subtle"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/deployctl/deployctl/deployments"
)

// Metrics are one process's. All methods may be used from several goroutines.
type Metrics struct {
	registry *prometheus.Registry
	sdk      *series

	calls       *prometheus.CounterVec   // method, code
	callSeconds *prometheus.HistogramVec // method
	updates     *prometheus.CounterVec   // kind, result
	updateTime  *prometheus.HistogramVec // kind
	steps       *prometheus.CounterVec   // op, outcome
	stepTime    *prometheus.HistogramVec // op
	collected   *prometheus.CounterVec   // what

	unattended prometheus.Counter

	objectSeconds *prometheus.HistogramVec // op
	objectErrors  *prometheus.CounterVec   // op, reason

	mu     sync.Mutex
	hosted map[deployments.UpdateName]time.Time // by this process's worker and since when, see host
}

// Seconds of calls and steps, and of whole updates.
var (
	brief = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
	long  = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400}
)

// New makes metrics of which nothing has been counted.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), sdk: newSeries(), hosted: map[deployments.UpdateName]time.Time{},
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deployctl_calls_total", Help: "Calls of the API that have ended.",
		}, []string{"method", "code"}),
		callSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "deployctl_call_seconds", Help: "How long unary calls of the API took.", Buckets: brief,
		}, []string{"method"}),
		updates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deployctl_updates_total", Help: "Updates that have ended; a preview's kind is preview.",
		}, []string{"kind", "result"}),
		updateTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "deployctl_update_seconds", Help: "How long updates took.", Buckets: long,
		}, []string{"kind"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deployctl_steps_total", Help: "Attempts of steps that have ended; an outcome of retried means " +
				"without effect, and another attempt comes.",
		}, []string{"op", "outcome"}),
		stepTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "deployctl_step_seconds", Help: "How long attempts of steps took.", Buckets: brief,
		}, []string{"op"}),
		collected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deployctl_collected_total", Help: "What was removed of stacks because it is not kept any more.",
		}, []string{"what"}),
		unattended: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "deployctl_no_worker_total", Help: "How often a request or an update was found to wait for a " +
				"worker that is not there.",
		}),
		objectSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "deployctl_s3_seconds", Help: "How long attempts of calls of the object store took.", Buckets: brief,
		}, []string{"op"}),
		objectErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deployctl_s3_errors_total", Help: "Attempts of calls of the object store that failed: " +
				"unavailable, credentials, other.",
		}, []string{"op", "reason"}),
	}
	running := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "deployctl_updates_running", Help: "Updates and previews that this process hosts.",
	}, func() float64 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return float64(len(m.hosted))
	})
	oldest := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "deployctl_oldest_update_seconds", Help: "For how long this process has hosted the update that it has " +
			"hosted longest; 0 without one.",
	}, m.oldest)
	m.registry.MustRegister(oldest, m.unattended, m.objectSeconds, m.objectErrors, m.calls, m.callSeconds, m.updates,
		m.updateTime, m.steps, m.stepTime, m.collected, running, m.sdk,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Unattended counts that something was found to wait for a worker.
func (m *Metrics) Unattended() { m.unattended.Inc() }

// host remembers that an update is on this process's worker, until it is released there.
func (m *Metrics) host(u deployments.UpdateName, here bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if here {
		if _, known := m.hosted[u]; !known {
			m.hosted[u] = time.Now()
		}
	} else {
		delete(m.hosted, u)
	}
}

// oldest is for how many seconds the update is hosted that has been hosted longest.
func (m *Metrics) oldest() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	longest := time.Duration(0)
	for _, since := range m.hosted {
		longest = max(longest, time.Since(since))
	}
	return longest.Seconds()
}

// Handler shows the metrics to Prometheus, with a token to who has that.
func (m *Metrics) Handler(token string) http.Handler {
	shown := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := []byte(r.Header.Get("Authorization"))
		if token != "" && subtle.ConstantTimeCompare(given, []byte("Bearer "+token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "metrics are shown to who has the token of metrics-token-file", http.StatusUnauthorized)
			return
		}
		shown.ServeHTTP(w, r)
	})
}
