//go:build unix

package pulumicli

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// killsAt has the receiver kill the workers while they deliver the first event whose body has a text. The channel is
// closed when they are gone.
func (r *receiver) killsAt(t *testing.T, c *cluster.Cluster, text string) <-chan struct{} {
	t.Helper()
	killed := make(chan struct{})
	var once sync.Once
	r.arrived = func(e event) {
		if !strings.Contains(e.body, text) {
			return
		}
		once.Do(func() {
			defer close(killed)
			for _, w := range c.Workers {
				if err := w.Kill(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	return killed
}

// TestADeliveryIsMadeThoughItsWorkerDiesInTheMiddle kills the only worker after the receiver has got the event, and
// before the worker gets the answer: the event is sent again, as the same one, and the log has it once.
func TestADeliveryIsMadeThoughItsWorkerDiesInTheMiddle(t *testing.T) {
	soaktest.Only(t)
	h, c, s := inParts(t, 1)
	dir := t.TempDir()
	plain.Write(t, dir)
	p := s.login(t, h.Deployctl(dir))
	r := newReceiver(t)
	killed := r.killsAt(t, c, `"action":"created"`)
	of := []string{"--org", "organization"}
	id := hook(t, p, "org", append(of, "--name", "all", "--url", r.URL)...)
	p.Must(t, "stack", "init", "hooked")
	<-killed
	harness.Must(t, c.Workers[0].Start())
	got := func() []event {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.events)
	}
	harness.Eventually(t, "the event is sent again", func() bool { return len(got()) > 1 })
	var log string
	harness.Eventually(t, "the delivery is in the log", func() bool {
		log = p.Must(t, append([]string{"org", "webhook", "delivery", "list", id}, of...)...)
		return strings.Contains(log, " 200 ")
	})
	events := got()
	if len(events) != 2 || events[0] != events[1] || strings.Count(log, events[0].id) != 1 {
		t.Errorf("it is sent as %+v, and the log has\n%s", events, log)
	}
}
