//go:build unix

package pulumicli

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// tellsDeployments has a deployment that succeeds and one whose update fails: a webhook is sent each of their stages
// once.
func tellsDeployments(t *testing.T, h *harness.Home, s service) {
	soaktest.Only(t)
	p, _, cloud := gitStack(t, h, s, "told")
	repository := serveRepository(t, plain, "")
	repository.commit(t, harness.Files{"Pulumi.told.yaml": "config:\n  shop:size: 1\n"}, "For this stack")
	r := newReceiver(t)
	args := []string{"--name", "deployments", "--url", r.URL + "/told"}
	for _, event := range []string{"queued", "started", "succeeded", "failed"} {
		args = append(args, "--event", "deployment_"+event)
	}
	hook(t, p, "stack", args...)
	from := []string{repository.url, "--git-branch", "main", "--env", cloud}
	said(t, p, "2 created", run("update", from...)...)
	repository.commit(t, harness.Files{"Pulumi.yaml": "name: shop\nruntime: yaml\nresources:\n" +
		"  web: {type: 'fake:index:Nothing'}\n"}, "A type that does not exist")
	failed(t, p, "Nothing", run("update", from...)...)

	want := []string{"1 update queued", "1 update started", "1 update succeeded", "2 update failed", "2 update queued",
		"2 update started"}
	told := func() (stages []string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range r.events {
			var d struct {
				Operation, Status, Error string
				Version                  int
			}
			harness.Must(t, json.Unmarshal([]byte(e.body), &d))
			if e.kind != "deployment" || (d.Error != "") != (d.Status == "failed") {
				t.Errorf("an event is %+v", e)
			}
			stages = append(stages, strconv.Itoa(d.Version)+" "+d.Operation+" "+d.Status)
		}
		slices.Sort(stages)
		return stages
	}
	harness.Eventually(t, "all stages are told", func() bool { return len(told()) >= len(want) })
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("it is told %q, want %q", got, want)
	}
}
