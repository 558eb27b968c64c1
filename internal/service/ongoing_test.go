package service

import (
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

func TestWhatRunsAndWaitsIsListedInItsOrderWithWhatItWaitsFor(t *testing.T) {
	s, f := newFake(t)
	f.since = time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC)
	f.begin(version(3))
	f.waiting = []deployments.UpdateName{version(4), version(5)}
	f.undecided["urn:pulumi:dev::shop::a:b:C::n"] = true
	must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: version(3), Kind: engine.KindUp,
		Status: deployments.StatusRunning, Initiator: "ann", Started: now}))
	preview := deployments.UpdateName{StackName: dev, Version: "p-1"} // that no worker has claimed
	f.open[deployments.UpdateWorkflowID(preview)] = true
	kind, err := converter.GetDefaultDataConverter().ToPayload("preview")
	must(t, err)
	f.attributes = map[string]*commonpb.SearchAttributes{deployments.UpdateWorkflowID(preview): {
		IndexedFields: map[string]*commonpb.Payload{deployments.AttributeKind: kind}}}
	over := deployments.UpdateName{StackName: dev, Version: "2"} // whose workflow is about to end
	f.open[deployments.UpdateWorkflowID(over)] = true
	must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: over, Status: "succeeded", Ended: now}))

	list, err := s.Ongoing(t.Context(), "")
	must(t, err)
	type shown struct{ version, command, status, by, reason string }
	var got []shown
	for _, u := range list {
		got = append(got, shown{u.Update.Version, u.Command(), u.Status, u.Initiator, u.Error})
	}
	want := []shown{{"3", "up", "running", "ann", ""}, {"p-1", "preview", "queued", "", ""},
		{"4", "", "queued", "", "waits for update 3, as number 1 of the queue"},
		{"5", "", "queued", "", "waits for update 3, as number 2 of the queue"}}
	if len(got) != len(want) {
		t.Fatalf("it is %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d. is %+v, not %+v", i+1, got[i], want[i])
		}
	}
	if len(list[0].Waiting) != 1 || !list[0].Started.Equal(now) || !list[1].Started.Equal(f.since) {
		t.Errorf("it is %+v", list)
	}
}
