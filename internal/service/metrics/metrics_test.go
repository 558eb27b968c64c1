package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/build"
)

// shown is what Prometheus reads of metrics.
func shown(m *Metrics) string {
	answer := httptest.NewRecorder()
	m.Handler("").ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return answer.Body.String()
}

// has reports the lines that are not shown.
func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no %s in\n%s", line, text)
		}
	}
}

// listing is how a page lists a metric, without its description.
var listing = regexp.MustCompile("(?m)^\\| `(deployctl_[a-z0-9_]+)` \\| ([a-z]+) \\| ?([^|]*?) ?\\|")

// everything counts each metric once, so that all are shown with their labels.
func everything() *Metrics {
	m := New(build.Of("1"))
	for _, v := range []*prometheus.CounterVec{m.calls, m.updates, m.steps, m.settled, m.collected, m.objectErrors} {
		v.WithLabelValues(anything(v)...)
	}
	for _, v := range []*prometheus.HistogramVec{m.callSeconds, m.updateTime, m.waitTime, m.stepTime, m.objectSeconds} {
		v.WithLabelValues(anything(v)...)
	}
	m.Ready(func() bool { return true })
	m.CertificateEnds(func() (time.Time, error) { return time.Now(), nil })
	m.FreeDisk(func() (uint64, bool) { return 1, true })
	m.Schedules(func(context.Context) (active, paused int, err error) { return 1, 1, nil })
	m.quotas.learn([]deployments.QuotaUse{{Organization: "acme", Limits: deployments.Quota{deployments.LimitStacks: 2},
		Used: map[deployments.Limit]int64{deployments.LimitStacks: 1}}})
	m.Spans(func() (exported, dropped, failed int64) { return 1, 1, 1 })
	return m
}

// anything has a value for each label of a vector.
func anything(v prometheus.Collector) []string {
	all := make(chan *prometheus.Desc, 1)
	v.Describe(all)
	_, labels, _ := strings.Cut((<-all).String(), "variableLabels: {")
	labels, _, _ = strings.Cut(labels, "}")
	return strings.Split(labels, ",")
}

func TestThePageOfObservabilityListsEveryMetricWithItsTypeAndLabels(t *testing.T) {
	m, described := everything(), make(chan *prometheus.Desc, 1000)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var made, told []string
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "deployctl_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		made = append(made, fmt.Sprintln(f.GetName(), strings.ToLower(f.GetType().String()), labels))
	}
	m.registry.Describe(described)
	close(described)
	for d := range described {
		_, name, _ := strings.Cut(d.String(), `fqName: "deployctl_`)
		name, _, own := strings.Cut(name, `"`)
		if own && !strings.Contains(strings.Join(made, ""), "deployctl_"+name+" ") {
			t.Errorf("everything() does not count deployctl_%s", name)
		}
	}
	page, err := os.ReadFile("../../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range listing.FindAllStringSubmatch(string(page), -1) {
		labels := strings.FieldsFunc(row[3], func(r rune) bool { return strings.ContainsRune("`, ", r) })
		slices.Sort(labels)
		told = append(told, fmt.Sprintln(row[1], row[2], labels))
	}
	slices.Sort(made)
	slices.Sort(told)
	if !slices.Equal(made, told) || len(made) < 20 {
		t.Errorf("there are\n%q and the page has\n%q", made, told)
	}
}

func TestWhatAlertsLookAtBeginsWithZero(t *testing.T) {
	has(t, shown(New(build.Info{})), `deployctl_steps_total{op="create",outcome="unknown"} 0`,
		`deployctl_s3_errors_total{op="get",reason="credentials"} 0`, "deployctl_no_worker_total 0",
		"deployctl_slow_worker_total 0", "deployctl_audit_failures_total 0", "deployctl_updates_recovered_total 0")
}

func TestBothKindsOfUpdatesAreCountedAndRecoveriesOnce(t *testing.T) {
	m, begun := New(build.Info{Version: "1.2.3", Commit: "0123abc", Revision: "7", Go: "go1"}), time.Now()
	info := deployments.UpdateInfo{Kind: engine.KindUp, Status: "succeeded", Started: begun.Add(-time.Second),
		Ended: begun.Add(time.Second)}
	before := info
	before.Ended = begun.Add(-time.Millisecond)
	leased := deployments.UpdateRequest{Lease: &deployments.Lease{}}
	m.ended(info, begun)
	m.ended(before, begun) // a commit that is repeated because its answer failed
	m.ended(deployments.LeaseEnded{UpdateInfo: info}, begun)
	m.ended(deployments.Recovered{UpdateInfo: info}, begun)
	m.ended(deployments.Recovered{UpdateInfo: info, Request: leased}, begun)
	m.ended(deployments.Recovered{UpdateInfo: before}, begun) // it had ended, and was counted
	m.ended(nil, begun)
	preview := info
	preview.DryRun, preview.Status = true, "failed"
	m.PreviewEnded(preview)
	m.began(toolOurs, deployments.UpdateRequest{Kind: engine.KindDestroy})
	m.began(toolPulumi, deployments.UpdateRequest{Kind: engine.KindDestroy,
		Submitted: &deployments.Submission{At: begun.Add(-time.Minute)}})
	m.Pulumi("GET /api/user", 200, time.Second)
	m.AuditFailed(3)
	has(t, shown(m), `deployctl_updates_total{kind="up",result="succeeded",tool="deployctl"} 3`,
		`deployctl_updates_total{kind="up",result="succeeded",tool="pulumi"} 2`,
		`deployctl_updates_total{kind="preview",result="failed",tool="pulumi"} 1`,
		`deployctl_updates_recovered_total 2`,
		`deployctl_update_wait_seconds_count{kind="destroy",tool="pulumi"} 1`,
		`deployctl_calls_total{code="200",edge="pulumi",method="GET /api/user"} 1`,
		`deployctl_call_seconds_count{edge="pulumi",method="GET /api/user"} 1`,
		`deployctl_audit_failures_total 3`,
		`deployctl_build_info{commit="0123abc",go="go1",revision="7",version="1.2.3"} 1`)
}

func TestAGaugeIsShownWhileItsValueIsKnown(t *testing.T) {
	m := New(build.Info{})
	ends, free := time.Unix(1_800_000_000, 0), uint64(0)
	for _, name := range []string{"certificate", "free_disk", "schedules", "quota", "ready"} {
		if text := shown(m); strings.Contains(text, "deployctl_"+name) {
			t.Errorf("%s is shown before somebody tells it:\n%s", name, text)
		}
	}
	var away error
	m.CertificateEnds(func() (time.Time, error) { return ends, away })
	m.FreeDisk(func() (uint64, bool) { return free, free > 0 })
	m.Ready(func() bool { return free > 0 })
	has(t, shown(m), "deployctl_ready 0")
	has(t, shown(m), "deployctl_certificate_expiry_seconds 1.8e+09")
	away, free = errors.New("it cannot be read"), 4096
	text := shown(m)
	has(t, text, "deployctl_free_disk_bytes 4096", "deployctl_ready 1")
	if strings.Contains(text, "certificate") {
		t.Errorf("a certificate that cannot be read is shown:\n%s", text)
	}
}

func TestSchedulesAreCountedOnceAMinuteAndNotShownWithoutTemporal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, counts := New(build.Info{}), 0
		var away error
		m.Schedules(func(context.Context) (active, paused int, err error) {
			counts++
			return 4, counts, away
		})
		has(t, shown(m), `deployctl_schedules{state="active"} 4`, `deployctl_schedules{state="paused"} 1`)
		has(t, shown(m), `deployctl_schedules{state="paused"} 1`)
		time.Sleep(schedulesFor)
		has(t, shown(m), `deployctl_schedules{state="paused"} 2`)
		away = errors.New("away")
		time.Sleep(schedulesFor)
		if text := shown(m); strings.Contains(text, "deployctl_schedules{") {
			t.Errorf("what is not known is shown:\n%s", text)
		}
	})
}

// Whoever can use the namespace starts workflows of types that they make up.
func TestSeriesOfTemporalsSDKAreBounded(t *testing.T) {
	m := New(build.Info{})
	for i := range 2 * mostSeries {
		h := m.SDK().WithTags(map[string]string{"workflow_type": fmt.Sprint("made up ", i)})
		h.Counter("temporal_workflow_task_queue_poll_succeed").Inc(1)
	}
	if len(m.sdk.all) > mostSeries {
		t.Errorf("%d are kept", len(m.sdk.all))
	}
}
