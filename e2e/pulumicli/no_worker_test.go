//go:build unix

package pulumicli

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// The start of an update waits for a worker as it waits for a busy stack: the CLI says why, and goes on by itself.
func TestAStartWaitsForAWorker(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newServed(t)
	v := s.newVictim(t, "deserted")
	for _, w := range s.cluster.Workers {
		w.Stop()
	}
	up, said := begun(t, v.pulumi)
	harness.Eventually(t, "the CLI says what it waits for", func() bool {
		return strings.Contains(said(), "Waiting for a worker: ")
	})
	_, err := s.cluster.AddWorker(s.home.Binary)
	harness.Must(t, err)
	if err := up.Wait(); err != nil || !strings.Contains(said(), "3 created") {
		t.Errorf("it ends with %v: %s", err, said())
	}
}
