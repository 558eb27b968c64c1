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

func TestAValueThatIsTooLargeBeforeOrAfterAStepIsReplacedOnBothSides(t *testing.T) {
	text := strings.Repeat("line\n", 5<<20/5)
	old := map[string]any{"grows": "one\ntwo\n", "shrinks": text, "same": "x"}
	now := map[string]any{"grows": text, "shrinks": "one\ntwo\n", "same": "x", "new": "y"}
	e := fit(deployments.WatchEvent{Event: &apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{
		Metadata: apitype.StepEventMetadata{Old: &apitype.StepEventStateMetadata{Outputs: old},
			New: &apitype.StepEventStateMetadata{Outputs: now}}}}})
	m := e.Event.ResOutputsEvent.Metadata
	for _, c := range []struct {
		value any
		size  int
	}{{m.Old.Outputs["grows"], jsonSize("one\ntwo\n")}, {m.New.Outputs["grows"], jsonSize(text)},
		{m.Old.Outputs["shrinks"], jsonSize(text)}, {m.New.Outputs["shrinks"], jsonSize("one\ntwo\n")}} {
		if size, ok := deployments.OmittedSize(c.value); size != c.size || !ok {
			t.Errorf("%.200v stands for %d bytes, not %d", c.value, size, c.size)
		}
	}
	if m.Old.Outputs["same"] != "x" || m.New.Outputs["same"] != "x" || m.New.Outputs["new"] != "y" ||
		len(m.Old.Outputs) != 3 || m.Old.Inputs != nil || old["shrinks"] != text {
		t.Errorf("%.500v became %.500v", old, m.Old.Outputs)
	}
}
