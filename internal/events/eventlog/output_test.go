package eventlog

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
)

// closedStore rejects every part until it is opened.
type closedStore struct {
	mu     sync.Mutex
	open   bool
	events []deployments.WatchEvent
}

func (s *closedStore) AppendEvents(_ context.Context, _ updates.Part, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return deployments.Errorf(deployments.CodeForbidden, "the store is closed")
	}
	events, err := Decode(data)
	s.events = append(s.events, events...)
	return err
}

func TestOutputThatTheStoreDoesNotTakeIsBoundedAndCounted(t *testing.T) {
	store := &closedStore{}
	output := NewOutput(store, deployments.UpdateName{Version: "1"}, nil)
	line := strings.Repeat("x", 1<<20)
	for range 3 * maxQueued >> 20 {
		output.Print("", apitype.DiagnosticEvent{Severity: string(diag.Info), Message: line})
	}
	output.mu.Lock()
	queued, events, dropped := output.queued, len(output.queue), output.dropped
	output.mu.Unlock()
	if queued > maxQueued || events+dropped != 3*maxQueued>>20 {
		t.Fatalf("%d bytes of %d events wait, and %d were dropped", queued, events, dropped)
	}
	store.mu.Lock()
	store.open = true
	store.mu.Unlock()
	output.Close(t.Context())
	output.mu.Lock()
	defer output.mu.Unlock()
	last := store.events[len(store.events)-1].Event.DiagnosticEvent.Message
	if output.queued != 0 || len(store.events) != events+1 || !strings.Contains(last, "17 messages are missing") {
		t.Errorf("%d bytes are left, %d events were written, the last one is %.80q (%d dropped)", output.queued,
			len(store.events), last, dropped)
	}
}

func TestEveryTextOfAnEventThatWaitsForTheStoreIsCounted(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	for what, event := range map[string]apitype.EngineEvent{
		"the resource of a message": {DiagnosticEvent: &apitype.DiagnosticEvent{URN: text}},
		"what is printed":           {StdoutEvent: &apitype.StdoutEngineEvent{Message: text}},
		"the resource of a policy":  {PolicyEvent: &apitype.PolicyEvent{ResourceURN: text}},
		"what a policy changed": {PolicyRemediationEvent: &apitype.PolicyRemediationEvent{
			After: map[string]any{"size": text}}},
		"the policies of a summary": {PolicyAnalyzeSummaryEvent: &apitype.PolicyAnalyzeSummaryEvent{
			Passed: []string{text}}},
	} {
		output := NewOutput(&closedStore{}, deployments.UpdateName{Version: "1"}, nil)
		for range maxQueued >> 20 {
			output.Put(event)
		}
		output.mu.Lock()
		if output.dropped == 0 || output.queued > maxQueued {
			t.Errorf("%s: %d bytes wait, and %d events were dropped", what, output.queued, output.dropped)
		}
		output.mu.Unlock()
		output.Close(t.Context())
	}
}
