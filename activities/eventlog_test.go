package activities

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
)

// shutLog is an event log that takes nothing before it is opened.
type shutLog struct {
	mu   sync.Mutex
	open bool
	said []deployments.WatchEvent
}

func (l *shutLog) AppendEvents(_ context.Context, _ statestore.Part, data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return deployments.Errorf(deployments.CodeForbidden, "it says no")
	}
	events, err := DecodeEvents(data)
	l.said = append(l.said, events...)
	return err
}

func TestAProgramThatSaysMoreThanTheStoreTakesIsHeldInBoundsAndCounted(t *testing.T) {
	log := &shutLog{}
	output := newOutputLog(log, deployments.UpdateName{StackName: testStack, Version: "1"}, nil)
	line := strings.Repeat("x", 1<<20)
	for range 3 * maxQueued >> 20 {
		output.take(pluginhost.Message{Severity: diag.Info, Text: line})
	}
	output.mu.Lock()
	queued, events, dropped := output.queued, len(output.queue), output.dropped
	output.mu.Unlock()
	if queued > maxQueued || events+dropped != 3*maxQueued>>20 {
		t.Fatalf("%d bytes of %d events wait, and %d were dropped", queued, events, dropped)
	}
	log.mu.Lock()
	log.open = true
	log.mu.Unlock()
	output.close(t.Context())
	output.mu.Lock()
	defer output.mu.Unlock()
	last := log.said[len(log.said)-1].Event.DiagnosticEvent.Message
	if output.queued != 0 || len(log.said) != events+1 || !strings.Contains(last, "17 messages are missing") {
		t.Errorf("%d bytes are left, %d events were written, the last says %.80q (%d dropped)", output.queued,
			len(log.said), last, dropped)
	}
}
