package activities

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/service/metrics"
	"github.com/deployctl/deployctl/internal/sys/build"
)

// A worker that was away when an update ended is never asked to release it: it forgets the update once it finds that
// the workflow is closed.
func TestTheMetricsOfWhatIsHostedEndWithTheSession(t *testing.T) {
	h, m := newHouse(t), metrics.New(build.Of("1"))
	m.Hosts(func() []time.Time { return HostedSince(h.acts) })
	shown := func() string {
		answer := httptest.NewRecorder()
		m.Handler("").ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		return answer.Body.String()
	}
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	if text := shown(); !strings.Contains(text, "\ndeployctl_updates_running 1\n") ||
		strings.Contains(text, "\ndeployctl_oldest_update_seconds 0\n") {
		t.Errorf("a hosted update is not shown:\n%s", text)
	}
	Forget(t.Context(), h.acts, h.update)
	if text := shown(); !strings.Contains(text, "\ndeployctl_updates_running 0\n") ||
		!strings.Contains(text, "\ndeployctl_oldest_update_seconds 0\n") {
		t.Errorf("one that is forgotten is still shown:\n%s", text)
	}
}
