package display

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// outputStep is the step of a stack whose outputs change.
func outputStep(old, now map[string]any) step {
	return step{op: apitype.OpSame, typ: projection.StackType, name: "shop-dev", old: old, new: now}
}

// numbered is a text of many lines, each of 8 characters.
func numbered(from, lines int) string {
	var b strings.Builder
	for n := range lines {
		fmt.Fprintf(&b, "%07d\n", from+n)
	}
	return b.String()
}

func TestALargeOutputIsCutWithItsSizeAndTheCommandThatPrintsIt(t *testing.T) {
	wide := map[string]any{}
	for n := range 10_000 {
		wide[fmt.Sprintf("key-%05d", n)] = "value"
	}
	for name, value := range map[string]any{"text": strings.Repeat("x", 3_300_000), "lines": numbered(0, 400_000),
		"object": wide, "list": []any{strings.Repeat("x", 3_300_000)}, "accents": strings.Repeat("é", 1_600_000)} {
		data, _ := json.Marshal(value)
		outputs := map[string]any{name: value, "url": "http://a/"}
		hint := fmt.Sprintf("… %d bytes in all; `deployctl stack output %s` prints it\n", len(data), name)
		for _, o := range []Options{{}, {Diff: true}} {
			got := shown(o, outputStep(nil, outputs).ends(), ended("succeeded", "", 1, nil))
			if len(got) > 4*mostInFull || !o.Diff && len(got) > 3*mostOfValue || !strings.Contains(got, hint) ||
				!strings.Contains(got, "http://a/") {
				t.Errorf("%s with %+v is shown in %d bytes, with the end …%s", name, o, len(got), got[max(0, len(got)-200):])
			}
		}
		s := newScene(t, 80, 40, Options{}).at(0, outputStep(nil, outputs).ends(), ended("succeeded", "", 1, nil))
		s.tree.Close()
		if got := s.term.String(); len(got) > 4*mostOfValue || !strings.Contains(got, fmt.Sprint(len(data), " bytes in")) {
			t.Errorf("%s is drawn in %d bytes", name, len(got))
		}
	}
}

func TestOutputsAreWholeUpToTheBoundAndInJSON(t *testing.T) {
	fits := strings.Repeat("x", mostOfValue-100)
	got := shown(Options{}, outputStep(nil, map[string]any{"fits": fits}).ends(), ended("succeeded", "", 1, nil))
	if !strings.Contains(got, fits) || strings.Contains(got, "in all") {
		t.Errorf("got\n%s", got)
	}
	long := strings.Repeat("x", 3_300_000)
	got = shown(Options{JSON: true}, outputStep(nil, map[string]any{"long": long}).ends(), ended("succeeded", "", 1, nil))
	if !strings.Contains(got, long) {
		t.Errorf("the event has %d bytes", len(got))
	}
}

func TestAChangedLargeOutputIsShownUpToABoundWithBothSizes(t *testing.T) {
	one := outputStep(map[string]any{"log": numbered(0, 100)}, map[string]any{"log": numbered(500_000, 15_000)})
	for _, o := range []Options{{}, {Diff: true}, {Preview: true}, {Preview: true, Diff: true}} {
		got := shown(o, one.ends(), ended("succeeded", "", 1, nil))
		hint := "… 902 bytes → 135002 bytes in all; `deployctl stack output log` prints it\n"
		if o.Preview {
			hint = "… 902 bytes → 135002 bytes in all; --json prints it\n"
		}
		if len(got) > 2*mostInFull || !strings.Contains(got, "~ log: +15000 -100 lines\n") ||
			!strings.Contains(got, "- 0000001\n") || !strings.Contains(got, hint) {
			t.Errorf("with %+v it is shown in %d bytes, with the end …%s", o, len(got), got[max(0, len(got)-200):])
		}
	}
	edited := strings.Replace(numbered(0, 100_000), "0050000", "another", 1)
	got := shown(Options{}, outputStep(map[string]any{"log": numbered(0, 100_000)}, map[string]any{"log": edited}).ends(),
		ended("succeeded", "", 1, nil))
	if !strings.Contains(got, "~ log: +1 -1 lines\n    - 0050000\n    + another\n") || strings.Contains(got, "in all") {
		t.Errorf("what changes in a large output is short, and shown as\n%s", got)
	}
}

func TestAnOutputThatTheEventOmitsIsNotComparedWithWhatStandsForIt(t *testing.T) {
	old, now := numbered(0, 100_000), numbered(0, 200_000)
	const both = "~ log: 900002 bytes → 1800002 bytes"
	for _, c := range []struct {
		old, now any
		preview  bool
		want     string
	}{
		{deployments.Omit(old), deployments.Omit(now), true, both + "\n"},
		{old, deployments.Omit(now), true, both + "\n"},
		{deployments.Omit(old), now, true, both + "\n"},
		{deployments.Omit(old), deployments.Omit(now), false, both + "; `deployctl stack output log` prints it\n"},
		{old, deployments.Omit(old), false, "    log: 900002 bytes; `deployctl stack output log` prints it\n"},
	} {
		one := outputStep(map[string]any{"log": c.old}, map[string]any{"log": c.now})
		got := shown(Options{Preview: c.preview, Diff: true}, one.ends(), ended("succeeded", "", 1, nil))
		if !strings.Contains(got, c.want) || len(got) > 300 {
			t.Errorf("it is shown in %d bytes, with the end …%s", len(got), got[max(0, len(got)-200):])
		}
	}
	same := outputStep(map[string]any{"log": old}, map[string]any{"log": deployments.Omit(old)})
	got := shown(Options{Preview: true}, same.ends(), ended("succeeded", "", 1, nil))
	if strings.Contains(got, "log") {
		t.Errorf("an output that has not changed is shown as\n%s", got)
	}
}

func TestALargePropertyIsCutInFull(t *testing.T) {
	made := step{op: apitype.OpCreate, typ: object, name: "page", new: map[string]any{"content": numbered(0, 400_000),
		"key": "index.html"}}
	changed := step{op: apitype.OpUpdate, typ: object, name: "log", old: map[string]any{
		"content": numbered(0, 100), "omitted": deployments.Omit("a")},
		new: map[string]any{"content": numbered(500_000, 15_000), "omitted": deployments.Omit("ab")}}
	state := projection.NewState()
	for _, e := range []deployments.WatchEvent{made.ends(), changed.ends()} {
		state.Apply(e)
	}
	got := strings.Join(Details(state, Options{}), "\n")
	for _, want := range []string{"… 3600002 bytes in all; --json prints it\n", "+ key: \"index.html\"",
		"~ content: +15000 -100 lines\n", "… 902 bytes → 135002 bytes in all; --json prints it\n",
		"~ omitted: 3 bytes → 4 bytes"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in what ends with …%s", want, got[len(got)-200:])
		}
	}
	if len(got) > 6*mostInFull {
		t.Errorf("the properties are shown in %d bytes", len(got))
	}
	got = shown(Options{Diff: true}, made.begins(), made.ends())
	if !strings.Contains(got, "… 3600002 bytes in all; `deployctl stack export` has it\n") {
		t.Errorf("an update shows …%s", got[max(0, len(got)-300):])
	}
}
