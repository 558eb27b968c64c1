package pulumiapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestAnEventHasTheStatesThatTheStockCLIReliesOn(t *testing.T) {
	state := &apitype.StepEventStateMetadata{URN: "u"}
	for name, m := range map[string]apitype.StepEventMetadata{
		"only the old state": {Op: apitype.OpSame, Old: state}, "only the new state": {Op: apitype.OpSame, New: state},
		"no state": {Op: apitype.OpSame, URN: "u", Type: "t"},
	} {
		e := apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: m}}
		whole(&e)
		if got := e.ResOutputsEvent.Metadata; got.Old == nil || got.New == nil || got.New.URN != "u" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	e := apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: apitype.StepEventMetadata{
		Op: apitype.OpCreate, New: state}}}
	if whole(&e); e.ResourcePreEvent.Metadata.Old != nil {
		t.Error("a resource that is created gets an old state")
	}
}

// The lint keeps handlers from any other way to the query.
func TestTheQueryOfACallIsParsedOnceHoweverManyEventsItSelects(t *testing.T) {
	c := &call{Request: httptest.NewRequest(http.MethodGet, "/?type=stdoutEvent&type=cancelEvent&urn=", nil)}
	f := c.eventFilter()
	c.URL.RawQuery = "type=summaryEvent&force=true"
	stdout, summary := apitype.EngineEvent{StdoutEvent: &apitype.StdoutEngineEvent{}},
		apitype.EngineEvent{SummaryEvent: &apitype.SummaryEvent{}}
	for _, f := range []eventFilter{f, c.eventFilter()} {
		if !f.selects(stdout) || f.selects(summary) || forced(c) {
			t.Errorf("the query is parsed again: %+v", f)
		}
	}
	if !(eventFilter{}).selects(summary) || (eventFilter{urn: "u"}).selects(summary) {
		t.Error("an empty filter does not select everything, or another one does")
	}
}

func TestTheEndOfAnUpdateThatNeverBeganHasAResult(t *testing.T) {
	for status, want := range map[string]apitype.OperationResult{
		deployments.StatusFailed: apitype.OperationResultFailed, deployments.StatusDamaged: apitype.OperationResultFailed,
		deployments.StatusCancelled: apitype.OperationResultCanceled,
		deployments.StatusSucceeded: apitype.OperationResultSucceeded,
	} {
		events := endOf(deployments.UpdateInfo{Status: status, Error: "why"})
		if len(events) != 2 || events[0].DiagnosticEvent.Message != "why\n" || events[1].SummaryEvent.Result != want {
			t.Errorf("%s: %+v", status, events)
		}
	}
}

func TestWhatNewerClientsSayInEventsComesBack(t *testing.T) {
	b := newBench(t)
	l := deployments.Leased{ID: "mine", Update: deployments.UpdateName{StackName: dev, Version: "7"},
		Expires: time.Now().Add(time.Minute)}
	info := deployments.UpdateInfo{Update: l.Update, Status: deployments.StatusRunning}
	if err := b.store.Updates.PutInfo(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	b.want(http.StatusNoContent, http.MethodPost, "/api/stacks/acme/shop/dev/update/mine/events/batch",
		"update-token "+b.server.Leases.LeaseToken(l), `{"events":[
			{"sequence":0,"policyEvent":{"policyName":"p","exceptions":[{"id":"EXC-1","reason":"agreed"}]}},
			{"sequence":1,"resOpFailedEvent":{"metadata":{"op":"create","urn":"u"},"awaited":true}}]}`)
	var answer apitype.GetUpdateEventsResponse
	if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodGet, "/api/stacks/acme/shop/dev/update/7/events",
		"token viewer", "")), &answer); err != nil {
		t.Fatal(err)
	}
	excepted, awaited := false, false
	for _, e := range answer.Events {
		if e.PolicyEvent != nil {
			excepted = len(e.PolicyEvent.Exceptions) == 1 && e.PolicyEvent.Exceptions[0].ID == "EXC-1"
		}
		awaited = awaited || e.ResOpFailedEvent != nil && e.ResOpFailedEvent.Awaited
	}
	if !excepted || !awaited {
		t.Errorf("they are %+v", answer.Events)
	}
}

func TestAFollowerOfAClientGetsEveryEventOnceAndItsEnd(t *testing.T) {
	b := newBench(t)
	l := deployments.Leased{ID: "mine", Update: deployments.UpdateName{StackName: dev, Version: "7"},
		Expires: time.Now().Add(time.Minute)}
	info := deployments.UpdateInfo{Update: l.Update, Status: deployments.StatusRunning}
	put := func() {
		if err := b.store.Updates.PutInfo(t.Context(), info); err != nil {
			t.Fatal(err)
		}
	}
	put()
	path, token := "/api/stacks/acme/shop/dev/update/7/events", ""
	read := func() (got []int) {
		t.Helper()
		var answer apitype.GetUpdateEventsResponse
		if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodGet, path+token, "token viewer", "")),
			&answer); err != nil {
			t.Fatal(err)
		}
		for _, e := range answer.Events {
			if got = append(got, e.Sequence); e.SummaryEvent != nil {
				got = append(got, -1)
			}
		}
		if token = ""; answer.ContinuationToken != nil {
			token = "?continuationToken=" + *answer.ContinuationToken
		}
		return got
	}
	write := func(events string) {
		b.want(http.StatusNoContent, http.MethodPost, "/api/stacks/acme/shop/dev/update/mine/events/batch",
			"update-token "+b.server.Leases.LeaseToken(l), `{"events":[`+events+`]}`)
	}
	write(`{"sequence":2,"stdoutEvent":{}},{"sequence":3,"stdoutEvent":{}}`)
	got := read()
	write(`{"sequence":0,"stdoutEvent":{}},{"sequence":1,"stdoutEvent":{}}`)
	got = append(got, read()...)
	info.Status, info.Ended = deployments.StatusCancelled, time.Now()
	put()
	got = append(got, read()...)
	if want := []int{2, 3, 0, 1, 0, -1}; !slices.Equal(got, want) || token != "" {
		t.Errorf("it gets %v, not %v, and then %q", got, want, token)
	}
	token = "?continuationToken=nothing"
	b.want(http.StatusBadRequest, http.MethodGet, path+token, "token viewer", "")
}
