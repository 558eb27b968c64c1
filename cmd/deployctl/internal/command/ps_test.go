package command

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// busy has two organizations, with an update each.
func busy(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t, nil) // without a Pulumi.yaml
	for _, name := range []deployments.StackName{{Organization: "acme", Project: "shop", Stack: "dev"},
		{Organization: "initech", Project: "blog", Stack: "live"}} {
		if err := d.service.CreateStack(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := d.service.Submit(t.Context(), deployments.UpdateRequest{Stack: name, Kind: "destroy",
			RequestID: name.Organization, Initiator: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestWhatRunsInAllStacksIsListedWithoutAProject(t *testing.T) {
	d := busy(t)
	got := d.must("ps")
	for _, part := range []string{"acme/shop/dev/1       destroy   running", "initech/blog/live/1   destroy   running"} {
		if !strings.Contains(got, part) {
			t.Errorf("it does not list %q but\n%s", part, got)
		}
	}
	if got := d.must("ps", "--organization", "acme", "--json"); !strings.Contains(got, `"status": "running"`) ||
		strings.Contains(got, "initech") {
		t.Errorf("of one organization it lists\n%s", got)
	}
}

func TestWhatRunsIsListedAgainWhenItChangesUntilAnInterrupt(t *testing.T) {
	d, ended := busy(t), make(chan int, 1)
	signals := make(chan os.Signal, 1)
	d.signals = signals
	var out, errs syncBuffer
	go func() {
		ended <- Main(context.Background(), d.env(&out, &errs), []string{"deployctl", "ps", "--watch"})
	}()
	out.shows(t, "initech/blog/live/1")
	u := deployments.UpdateName{StackName: deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"},
		Version: "1"}
	// to its end
	if err := d.service.Watch(t.Context(), u, func(deployments.WatchEvent) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := d.service.CreateStack(t.Context(), deployments.StackName{Organization: "acme", Project: "shop",
		Stack: "next"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.service.Submit(t.Context(), deployments.UpdateRequest{Stack: deployments.StackName{
		Organization: "acme", Project: "shop", Stack: "next"}, Kind: "up", RequestID: "next"}); err != nil {
		t.Fatal(err)
	}
	out.shows(t, "acme/shop/next/1")
	signals <- os.Interrupt
	if code := <-ended; code != 0 || strings.Count(out.String(), "initech/blog/live/1") < 2 {
		t.Errorf("it ends with %d:\n%s%s", code, out.String(), errs.String())
	}
}
