package eventlog

import (
	"encoding/json"
	"fmt"
	"maps"
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
	var old, now apitype.StepEventStateMetadata
	if m.Old != nil {
		old = *m.Old
		m.Old = &old
	}
	if m.New != nil {
		now = *m.New
		m.New = &now
	}
	old.Inputs, now.Inputs = fitValues(old.Inputs, now.Inputs)
	old.Outputs, now.Outputs = fitValues(old.Outputs, now.Outputs)
	if jsonSize(m.DetailedDiff) > maxEvent/2 {
		m.DetailedDiff = nil
	}
	return m
}

// fitValues replaces each value that is too large by its size and digest. If the rest is too large, it is replaced as a
// whole. What is replaced on one side is replaced on both: nothing is compared with what stands for a value.
func fitValues(old, now map[string]any) (was, is map[string]any) {
	large := map[string]bool{}
	for _, values := range []map[string]any{old, now} {
		for name, v := range values {
			large[name] = large[name] || jsonSize(v) > maxValue
		}
	}
	was, is = omit(old, large), omit(now, large)
	if max(jsonSize(was), jsonSize(is)) > maxEvent/8 {
		was, is = summed(was), summed(is)
	}
	return was, is
}

// omit replaces the values with some names.
func omit(values map[string]any, names map[string]bool) map[string]any {
	out := maps.Clone(values)
	for name := range values {
		if names[name] {
			out[name] = deployments.Omit(values[name])
		}
	}
	return out
}

// summed replaces values by their number and size.
func summed(values map[string]any) map[string]any {
	if len(values) == 0 {
		return values
	}
	return map[string]any{"…": fmt.Sprintf("(%d values of %d bytes are not shown; `deployctl stack export` has them)",
		len(values), jsonSize(values))}
}

// jsonSize returns the length of a value as JSON; 0 for a value that cannot be encoded, which Encode reports.
func jsonSize(v any) int {
	data, _ := json.Marshal(v)
	return len(data)
}
