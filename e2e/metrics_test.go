package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, listener.Close())
	return listener.Addr().String()
}

// scraped is what Prometheus would read.
func scraped(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s\n%s", answer.Status, text)
	}
	return string(text)
}

func TestAServiceCountsForPrometheusWhatItDoes(t *testing.T) {
	t.Parallel()
	h, address := newHome(t), freeAddress(t)
	h.in(h.dir).must(t, "dev", "--background", "--metrics-listen", address)
	s := newStage(t, h)
	s.update(t, "up")
	eventually(t, "the update is released", func() bool { return strings.Contains(scraped(t, address), "deployctl_updates_running 0\n") })
	text := scraped(t, address)
	for _, line := range []string{
		`deployctl_updates_total{kind="up",result="succeeded"} 1`,
		fmt.Sprintf(`deployctl_steps_total{op="create",outcome="done"} %d`, layersCreates+1), // the default provider is one
		`deployctl_update_seconds_count{kind="up"} 1`,
		`deployctl_calls_total{code="OK",method="/deployctl.v1.Deployments/Submit"} 1`,
		`deployctl_calls_total{code="OK",method="/deployctl.v1.Deployments/Watch"} 1`,
		`deployctl_s3_seconds_count{op="put"}`, `deployctl_oldest_update_seconds 0`,
		`temporal_request{`, `temporal_activity_execution_latency_seconds_bucket{`, `go_goroutines `,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, projectName(t)) || strings.Contains(text, "named-1") {
		t.Error("a label names a project or a resource")
	}
}
