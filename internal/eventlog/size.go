package eventlog

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	// maxEvent bounds an event as JSON, far below the 16 MiB of a message to a client.
	maxEvent = 4 << 20
	// maxValue bounds one property's value, and maxMessage the message, of an event that is too large.
	maxValue, maxMessage = 64 << 10, 256 << 10
)

// fit returns an event that is small enough for a message to a client. It replaces large values by their size and
// digest; the state has the whole values.
func fit(e deployments.WatchEvent) deployments.WatchEvent {
	if e.Event == nil || jsonSize(e.Event) <= maxEvent {
		return e
	}
	event := *e.Event
	switch {
	case event.ResourcePreEvent != nil:
		pre := *event.ResourcePreEvent
		pre.Metadata = fitStep(pre.Metadata)
		event.ResourcePreEvent = &pre
	case event.ResOutputsEvent != nil:
		out := *event.ResOutputsEvent
		out.Metadata = fitStep(out.Metadata)
		event.ResOutputsEvent = &out
	case event.ResOpFailedEvent != nil:
		failed := *event.ResOpFailedEvent
		failed.Metadata = fitStep(failed.Metadata)
		event.ResOpFailedEvent = &failed
	case event.DiagnosticEvent != nil:
		diagnostic := *event.DiagnosticEvent
		diagnostic.Message = fitMessage(diagnostic.Message)
		event.DiagnosticEvent = &diagnostic
	}
	e.Event = &event
	return e
}

func fitMessage(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	beginning := strings.ToValidUTF8(text[:maxMessage], "") // the last character may be cut
	return beginning + fmt.Sprintf(" … (cut: %d of %d bytes are shown)\n", maxMessage, len(text))
}

func fitStep(m apitype.StepEventMetadata) apitype.StepEventMetadata {
	for _, state := range []**apitype.StepEventStateMetadata{&m.Old, &m.New} {
		if *state == nil {
			continue
		}
		short := **state
		short.Inputs, short.Outputs = fitValues(short.Inputs), fitValues(short.Outputs)
		*state = &short
	}
	if jsonSize(m.DetailedDiff) > maxEvent/2 {
		m.DetailedDiff = nil
	}
	return m
}

// fitValues replaces each value that is too large by its size and digest, so that values that differ still look
// different. If the rest is too large, it is replaced as a whole.
func fitValues(values map[string]any) map[string]any {
	if values == nil {
		return nil
	}
	out := make(map[string]any, len(values))
	for name, v := range values {
		data, err := json.Marshal(v)
		if err == nil && len(data) > maxValue {
			v = fmt.Sprintf("(%d bytes with the digest %x are not shown; `deployctl stack export` has them)", len(data),
				sha256.Sum256(data))
		}
		out[name] = v
	}
	if size := jsonSize(out); size > maxEvent/8 {
		return map[string]any{"…": fmt.Sprintf("(%d values of %d bytes are not shown; `deployctl stack export` has "+
			"them)", len(out), size)}
	}
	return out
}

// jsonSize returns the length of a value as JSON; 0 for a value that cannot be encoded, which Encode reports.
func jsonSize(v any) int {
	data, _ := json.Marshal(v)
	return len(data)
}
