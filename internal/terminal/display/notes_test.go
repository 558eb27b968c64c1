package display

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// stepEvents returns the events of a step.
func stepEvents(m apitype.StepEventMetadata) []deployments.WatchEvent {
	return []deployments.WatchEvent{
		{Event: &apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: m}}},
		{Event: &apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: m}}},
	}
}

func TestARowSaysWhatElseAStepDoes(t *testing.T) {
	same := step{op: apitype.OpSame, typ: bucket, name: "new", old: map[string]any{}, new: map[string]any{}}
	renamed := same.metadata()
	renamed.Old.URN, renamed.Old.Protect = id(bucket, "old"), true
	retyped := step{op: apitype.OpUpdate, typ: object, name: "page", old: map[string]any{"a": "1"},
		new: map[string]any{"a": "2"}}.metadata()
	retyped.Old.URN = id(bucket, "page")
	tainted := step{op: apitype.OpReplace, typ: bucket, name: "site", old: map[string]any{},
		new: map[string]any{}}.metadata()
	tainted.Old.Taint = true
	s := newScene(t, 100, 24, Options{Preview: true})
	for _, m := range []apitype.StepEventMetadata{renamed, retyped, tainted} {
		s.at(0, stepEvents(m)...)
	}
	s.at(1, ended("succeeded", "", 1, map[string]int{"same": 1, "update": 1, "replace": 1}))
	s.tree.Close()
	s.shows(`
  deployctl:s3:Bucket new   (was old, no longer protected)
± deployctl:s3:Bucket site  replace (tainted)
~ deployctl:s3:Object page  update (was deployctl:s3:Bucket page)
    ~ a: "1" → "2"

Resources:
  ~ 1 to update
  ± 1 to replace
    1 unchanged
preview succeeded in 1s
`)
	var out strings.Builder
	l := newLines(Options{Out: &out, State: s.tree.state, Kind: "up", Now: s.tree.options.Now})
	for _, e := range append(stepEvents(renamed), ended("succeeded", "", 1, map[string]int{"same": 1})) {
		l.Item(e)
	}
	if want := "  deployctl:s3:Bucket new (was old, no longer protected)\n"; !strings.HasPrefix(out.String(), want) ||
		strings.Contains(out.String(), "nothing changed") {
		t.Errorf("in a pipe:\n%s", out.String())
	}
}
