package wire

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"google.golang.org/protobuf/proto"
)

// resource is an event about a resource with such inputs and outputs.
func resource(properties map[string]any) *apitype.EngineEvent {
	state := &apitype.StepEventStateMetadata{URN: "urn", Inputs: properties, Outputs: properties}
	return &apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{
		Metadata: apitype.StepEventMetadata{URN: "urn", Old: state, New: state}}}
}

func TestAnEventThatNoMessageCanCarryIsCutAndSaysSo(t *testing.T) {
	const mib = 1 << 20
	many := func(n int, make func(i int) any) []any {
		list := []any{}
		for i := range n {
			list = append(list, make(i))
		}
		return list
	}
	wide := map[string]any{}
	for i := range 40_000 {
		wide[strings.Repeat("k", 100)+string(rune('a'+i%26))+strings.Repeat("x", i%1000)] = "v"
	}
	for name, c := range map[string]struct {
		event *apitype.EngineEvent
		says  string
	}{
		"a long text": {resource(map[string]any{"text": strings.Repeat("é", 5*mib), "id": "small"}),
			`"small"`},
		"many texts": {resource(map[string]any{"list": many(400,
			func(int) any { return strings.Repeat("x", 100_000) })}), "bytes are left out"},
		"a long list": {resource(map[string]any{"list": many(800_000, func(i int) any { return i })}),
			"more are left out"},
		"a wide object": {resource(wide), "left out"},
		"a program's long line": {&apitype.EngineEvent{DiagnosticEvent: &apitype.DiagnosticEvent{
			Message: strings.Repeat("x", 20*mib)}}, "bytes are left out"},
		"what cannot be cut": {
			&apitype.EngineEvent{PreludeEvent: &apitype.PreludeEvent{
				Config: map[string]string{"k": strings.Repeat("x", 20*mib)}}}, "too large to be shown",
		},
	} {
		m, err := FromWatchEvent(deployments.WatchEvent{Event: c.event})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if size := proto.Size(m); size > 16*mib {
			t.Errorf("%s: %d bytes", name, size)
		}
		if text := string(m.GetEngineEvent()); !strings.Contains(text, c.says) {
			t.Errorf("%s does not say %q, but %.300s", name, c.says, text)
		}
		if _, err := ToWatchEvent(m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := resource(map[string]any{"text": strings.Repeat("x", 2*mib)})
	if m, err := FromWatchEvent(deployments.WatchEvent{Event: whole}); err != nil ||
		strings.Contains(string(m.GetEngineEvent()), "left out") {
		t.Errorf("an event that fits was cut: %v", err)
	}
}
