package eventlog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestEncodeShortensAnEventThatIsTooLargeForAClient(t *testing.T) {
	large := func(fill string) map[string]any {
		return map[string]any{"content": strings.Repeat(fill, 9<<20), "name": "site"}
	}
	many := map[string]any{}
	for n := range 100_000 {
		many[fmt.Sprint("key-", n)] = strings.Repeat("v", 100)
	}
	events := []deployments.WatchEvent{
		{Event: &apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: apitype.StepEventMetadata{
			URN: "urn", Old: &apitype.StepEventStateMetadata{Outputs: large("a")},
			New: &apitype.StepEventStateMetadata{Outputs: large("b"), Inputs: many},
		}}}},
		{Event: &apitype.EngineEvent{DiagnosticEvent: &apitype.DiagnosticEvent{Message: strings.Repeat("x", 17<<20)}}},
		{Event: &apitype.EngineEvent{DiagnosticEvent: &apitype.DiagnosticEvent{Message: "short"}}},
	}
	data, err := Encode(events)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(data)
	if err != nil || len(read) != len(events) || len(data) > 2*maxEvent {
		t.Fatalf("%d events in %d bytes: %v", len(read), len(data), err)
	}
	step := read[0].Event.ResOutputsEvent.Metadata
	before, after := step.Old.Outputs["content"].(string), step.New.Outputs["content"].(string)
	if before == after || !strings.Contains(before, "9437186 bytes") || !strings.Contains(before, "stack export") ||
		step.New.Outputs["name"] != "site" {
		t.Errorf("it shows %.200q and %.200q, of %v", before, after, step.New.Outputs["name"])
	}
	if message := read[1].Event.DiagnosticEvent.Message; !strings.Contains(message,
		"(cut: 262144 of 17825792 bytes are shown)") {
		t.Errorf("it says %q at its end", message[len(message)-80:])
	}
	if read[2].Event.DiagnosticEvent.Message != "short" || len(events[1].Event.DiagnosticEvent.Message) != 17<<20 {
		t.Error("what fits was changed, or what was given")
	}
}
