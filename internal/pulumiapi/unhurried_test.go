package pulumiapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// journaling is a service that says when it stores journal entries.
type journaling struct {
	offline
	did *[]string
}

func (j journaling) WriteJournal(context.Context, deployments.Leased, json.RawMessage) error {
	*j.did = append(*j.did, "stored")
	return nil
}

func (j journaling) CompleteUpdate(
	context.Context, deployments.Leased, engine.Status,
) (deployments.UpdateInfo, error) {
	return deployments.UpdateInfo{}, nil
}

func TestAnAnswerToJournalEntriesIsHeldWhereNobodyWaitsForIt(t *testing.T) {
	b := newBench(t)
	var did []string
	e, err := newEdge(Config{Service: journaling{offline{b.server, b.store}, &did},
		Log: slog.New(slog.DiscardHandler), Authority: callers{}})
	if err != nil {
		t.Fatal(err)
	}
	e.pause = func(_ context.Context, d time.Duration) { did = append(did, "held for "+d.String()) }
	l := deployments.Leased{ID: "mine", Update: deployments.UpdateName{StackName: dev, Version: "7"}, Fence: 1,
		Expires: time.Now().Add(time.Minute)}
	send := func(method, path, body string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, "/api/stacks/acme/shop/dev/update/mine/"+path,
			strings.NewReader(body))
		r.Header.Set("Authorization", "update-token "+b.server.LeaseToken(l))
		answer := httptest.NewRecorder()
		e.serve(answer, r)
		if answer.Code >= http.StatusMultipleChoices {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
	}
	for _, entries := range []string{
		`{"kind":0,"operationID":1}`,
		`{"kind":1,"operationID":1,"state":{"urn":"u","type":"t"}},{"kind":0,"operationID":2}`,
		`{"kind":0,"operationID":3,"operation":{"type":"creating","resource":{"urn":"u","type":"t"}}}`,
	} {
		send(http.MethodPatch, "journalentries", `{"entries":[`+entries+`]}`)
	}
	want := []string{"stored", "stored", "held for " + unhurriedPause.String(), "stored"}
	if !slices.Equal(did, want) {
		t.Errorf("%q, want %q", did, want)
	}
	send(http.MethodPost, "complete", `{"status":"succeeded"}`)
	if len(e.unhurried.leases) != 0 {
		t.Error("an update that has ended is still followed")
	}
}

func TestOnlySoManyJournalsAreFollowed(t *testing.T) {
	var u unhurried
	for n := range 3 * mostFollowed {
		u.waits(string(rune(n)), nil)
		if len(u.leases) > mostFollowed {
			t.Fatal("it follows more than so many")
		}
	}
}
