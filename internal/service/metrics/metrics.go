// Package metrics counts what a process of the service does and shows it to Prometheus: calls of the API, updates,
// steps, and whatever Temporal's SDK counts of itself. No label holds the name of a stack or a resource, so that their
// number stays small and nothing about anybody's infrastructure is shown; only what organizations use is shown by their
// names.
package metrics

import (
	"crypto/subtle"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/deployctl/deployctl/internal/sys/build"
)

// Metrics are one process's. All methods may be used from several goroutines.
type Metrics struct {
	registry *prometheus.Registry
	sdk      *series

	calls       *prometheus.CounterVec   // edge, method, code
	callSeconds *prometheus.HistogramVec // edge, method
	updates     *prometheus.CounterVec   // tool, kind, result
	updateTime  *prometheus.HistogramVec // tool, kind
	waitTime    *prometheus.HistogramVec // tool, kind
	recovered   prometheus.Counter
	steps       *prometheus.CounterVec   // op, outcome
	stepTime    *prometheus.HistogramVec // op
	settled     *prometheus.CounterVec   // package, rule, result
	packages    names                    // values of the label package
	collected   *prometheus.CounterVec   // what
	audit       prometheus.Counter

	unattended, unhurried prometheus.Counter

	objectSeconds *prometheus.HistogramVec // op
	objectErrors  *prometheus.CounterVec   // op, reason

	// hosted tells since when each update is hosted that this process's worker hosts; nil: there is no worker yet.
	hosted atomic.Pointer[func() []time.Time]

	ready, certificate, freeDisk *told
	schedules                    *scheduleCounts
	quotas                       *quotaCounts
}

// Values of the labels edge and tool: the API and the Pulumi Service API, and who executes an update, a worker or the
// stock CLI.
const (
	edgeGRPC, edgePulumi = "grpc", "pulumi"
	toolOurs, toolPulumi = "deployctl", "pulumi"
)

// Seconds of calls and steps, and of whole updates.
var (
	brief = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
	long  = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400}
)

// New makes metrics of a build, of which nothing has been counted.
func New(b build.Info) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), sdk: newSeries(),
		ready: newTold("deployctl_ready", "1 while the process can work: Temporal and S3 answer, and it has the bucket's "+
			"newest keys; else 0."),
		certificate: newTold("deployctl_certificate_expiry_seconds", "When the certificate in use expires, in seconds "+
			"since 1970."),
		freeDisk: newTold("deployctl_free_disk_bytes", "What may still be written to the disk with the files of programs."),
		schedules: &scheduleCounts{desc: prometheus.NewDesc("deployctl_schedules", "Schedules that there are, at most a "+
			"minute ago: active, paused.", []string{"state"}, nil)},
		quotas: newQuotaCounts(),
	}
	m.makeCalls()
	m.makeUpdates()
	m.makeSteps()
	m.beginRare()
	m.register(b)
	return m
}

// makeCalls makes what is counted of calls, of clients and of the object store, and of what they lead to.
func (m *Metrics) makeCalls() {
	m.calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployctl_calls_total", Help: "Calls of the API and of the Pulumi Service API that have ended.",
	}, []string{"edge", "method", "code"})
	m.callSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "deployctl_call_seconds", Help: "How long unary calls of the API, and calls of the Pulumi Service " +
			"API, took.", Buckets: brief,
	}, []string{"edge", "method"})
	m.audit = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "deployctl_audit_failures_total", Help: "Entries that could not be written to the audit log; the " +
			"process's log has them.",
	})
	m.unattended = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "deployctl_no_worker_total", Help: "How often a request or an update was found to wait for a " +
			"worker that is not there.",
	})
	m.unhurried = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "deployctl_slow_worker_total", Help: "How often a request or an update was found to wait for workers " +
			"that are there, or were a moment ago.",
	})
	m.objectSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "deployctl_s3_seconds", Help: "How long attempts of calls of the object store took.", Buckets: brief,
	}, []string{"op"})
	m.objectErrors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployctl_s3_errors_total", Help: "Attempts of calls of the object store that failed: " +
			"unavailable, credentials, other.",
	}, []string{"op", "reason"})
}

// makeUpdates makes what is counted of whole updates.
func (m *Metrics) makeUpdates() {
	m.updates = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployctl_updates_total", Help: "Updates that have ended; a preview's kind is preview.",
	}, []string{"tool", "kind", "result"})
	m.updateTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "deployctl_update_seconds", Help: "How long updates took.", Buckets: long,
	}, []string{"tool", "kind"})
	m.waitTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "deployctl_update_wait_seconds", Help: "How long updates have waited, for other updates of their " +
			"stack and for a worker, until they began.", Buckets: long,
	}, []string{"tool", "kind"})
	m.recovered = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "deployctl_updates_recovered_total", Help: "Updates that ended by recovery, because their workflow had " +
			"ended without them.",
	})
	m.collected = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployctl_collected_total", Help: "What was removed of stacks because it is not kept any more.",
	}, []string{"what"})
}

// makeSteps makes what is counted of steps.
func (m *Metrics) makeSteps() {
	m.steps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployctl_steps_total", Help: "Attempts of steps that have ended; an outcome of retried means " +
			"without effect, and another attempt comes.",
	}, []string{"op", "outcome"})
	m.stepTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "deployctl_step_seconds", Help: "How long attempts of steps took.", Buckets: brief,
	}, []string{"op"})
	m.settled = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployctl_settled_total", Help: "Creates with an unknown outcome that were looked for, by the kind of " +
			"their settle rule: found, absent, ambiguous, repeated, or no rule.",
	}, []string{"package", "rule", "result"})
}

// register makes what is computed when it is read, and adds everything to the registry.
func (m *Metrics) register(b build.Info) {
	running := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "deployctl_updates_running", Help: "Updates and previews that this process hosts.",
	}, func() float64 { return float64(len(m.since())) })
	oldest := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "deployctl_oldest_update_seconds", Help: "For how long this process has hosted the update that it has " +
			"hosted longest; 0 without one.",
	}, m.oldest)
	about := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "deployctl_build_info", Help: "1; the labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "revision": b.Revision, "go": b.Go},
	})
	about.Set(1)
	m.registry.MustRegister(about, m.ready, m.certificate, m.freeDisk, m.schedules, m.quotas, m.waitTime, m.recovered,
		m.audit,
		oldest, m.unattended, m.unhurried, m.objectSeconds, m.objectErrors, m.calls, m.callSeconds, m.updates,
		m.updateTime, m.steps, m.stepTime, m.settled, m.collected, running, m.sdk,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// Unattended counts that something was found to wait for a worker: for one that is there, or for one that is not.
func (m *Metrics) Unattended(attended bool) {
	if attended {
		m.unhurried.Inc()
	} else {
		m.unattended.Inc()
	}
}

// Hosts takes what tells since when each update is hosted that this process's worker hosts: the worker itself, so that
// nothing counts that it has forgotten.
func (m *Metrics) Hosts(since func() []time.Time) { m.hosted.Store(&since) }

func (m *Metrics) since() []time.Time {
	if tell := m.hosted.Load(); tell != nil {
		return (*tell)()
	}
	return nil
}

// oldest is for how many seconds the update is hosted that has been hosted longest.
func (m *Metrics) oldest() float64 {
	longest := time.Duration(0)
	for _, since := range m.since() {
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
