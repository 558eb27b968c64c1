package activities

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	// maxEvent bounds an event as JSON, far below the 16 MiB of a message to a client.
	maxEvent = 4 << 20
	// maxValue bounds a property's value in an event that is too large, and maxSaid a message in it.
	maxValue, maxSaid = 64 << 10, 256 << 10
)

// fit shortens an event that is too large to be sent: its large values are named, not shown. The state has them as a
// whole.
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
		said := *event.DiagnosticEvent
		if n := len(said.Message); n > maxSaid {
			said.Message = head(said.Message, maxSaid) + fmt.Sprintf(" … (cut: %d of %d bytes are shown)\n", maxSaid, n)
		}
		event.DiagnosticEvent = &said
	}
	e.Event = &event
	return e
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

// fitValues names the values that are too large. Those that differ are named differently. Very many values are not
// shown at all.
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

// jsonSize is what a value takes as JSON.
func jsonSize(v any) int {
	data, _ := json.Marshal(v) // what cannot be written fails where it is
	return len(data)
}

// encodeFitting writes events, each of a size that can be sent. Most are small, so the whole is looked at first.
func encodeFitting(events []deployments.WatchEvent) ([]byte, error) {
	data, err := json.Marshal(events)
	if err != nil || len(data) <= maxEvent {
		return data, err
	}
	fitting := make([]deployments.WatchEvent, len(events))
	for i, e := range events {
		fitting[i] = fit(e)
	}
	return json.Marshal(fitting)
}
