package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// saysAgain waits until the command has said a text n times, and notes how long that took.
func (r *ran) saysAgain(t *testing.T, text string, n int) {
	t.Helper()
	begun := time.Now()
	eventually(t, strings.Join(r.args, " ")+" says "+text, func() bool { return strings.Count(r.said(), text) >= n })
	t.Logf("%v says %q after %v", r.args, text, time.Since(begun).Round(100*time.Millisecond))
}

// What does not answer while serve does, Temporal, the bucket or a worker, is named by every command that waits for it,
// and all go on by themselves when it is there.
func TestTheClientNamesThePartThatDoesNotAnswer(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := newHome(t)
	h.in(h.dir).must(t, "dev", "--background")
	settings, status := h.parts(t)
	h.in(h.dir).must(t, "dev", "stop")
	listen, metrics := porttest.Address(t), porttest.Address(t)
	service := h.in(h.dir, settings...)
	part := func(args ...string) *ran { return service.start(t, args...) }
	s3, temporal := part("dev", "s3", "--home", status.Home), part("dev", "temporal", "--home", status.Home)
	part("serve", "--listen", listen, "--metrics-listen", metrics).says(t, "serving")
	healthy(t, listen)
	s := newStage(t, h, "DEPLOYCTL_SERVER="+listen, "DEPLOYCTL_TOKEN=the-first-token")
	s.must(t, "config", "set", "fake:endpoint", s.cloud.URL())
	var all []*ran
	begin := func(args ...string) *ran {
		all = append(all, s.start(t, args...))
		return all[len(all)-1]
	}

	const noWorker = "Waiting for a worker: none of the task queue deployctl-store-"
	gate := s.gate(t, "named-2", fakecloud.Before)
	preview, up := begin("preview"), begin("up", "--yes", "--skip-preview")
	preview.saysAgain(t, noWorker, 1)
	up.saysAgain(t, noWorker, 1)
	s.must(t, "stack")
	if text := scraped(t, metrics); strings.Contains(text, "deployctl_no_worker_total 0\n") {
		t.Errorf("nothing is counted that waits for a worker:\n%s", text)
	}
	worker := part("worker")
	must(t, gate.Wait(waiting(t)))
	up.saysAgain(t, "server-2 created", 1) // nobody could find it again
	preview.mustEnd(t, 0)

	worker.kill(t)
	up.saysAgain(t, "Waiting for a worker: those of the task queue deployctl-store-", 1) // it polled a moment ago
	s.must(t, "stack")

	temporal.kill(t)
	away := "Temporal at " + status.TemporalAddress + " does not answer: "
	up.saysAgain(t, away, 1)
	for _, args := range [][]string{{"stack"}, {"schedule", "ls"}, {"preview"}, {"attach"}} {
		begin(args...)
	}
	for _, r := range all[2:] {
		r.saysAgain(t, away, 1)
	}
	temporal = part("dev", "temporal", "--home", status.Home)
	worker = part("worker")
	must(t, gate.Open(t.Context()))
	for _, r := range all {
		r.mustEnd(t, 0)
	}

	s3.kill(t)
	all = nil
	for _, args := range [][]string{{"stack", "ls"}, {"stack", "history"}, {"preview"}} {
		begin(args...)
	}
	for _, r := range all {
		r.saysAgain(t, "the bucket deployctl at "+status.S3Endpoint+" does not answer: ", 1)
	}
	s3 = part("dev", "s3", "--home", status.Home)
	for _, r := range all {
		r.mustEnd(t, 0)
		if strings.Contains(r.said(), "the service at") {
			t.Errorf("%v calls the service away:\n%s", r.args, r.said())
		}
	}
	for _, r := range slices.Backward([]*ran{s3, temporal, worker}) {
		r.interrupt(t)
		r.mustEnd(t, 0)
	}
}
