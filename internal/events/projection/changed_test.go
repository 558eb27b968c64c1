package projection

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Otherwise `preview --expect-no-changes` would fail for every program that reads.
func TestAReadIsAChangeOnlyIfItBringsSomethingNew(t *testing.T) {
	s := &State{Rows: []*Row{{Type: "fake:index:Server", Name: "seen", Op: apitype.OpRead}}}
	if s.Changed() {
		t.Error("a read is a change while it is not known what it brings")
	}
	s.End = &deployments.UpdateInfo{Changes: map[string]int{"same": 3}}
	if s.Changed() {
		t.Error("a read that brings nothing new is a change")
	}
	s.End.Changes["read"] = 1
	if !s.Changed() {
		t.Error("a read that brings something new is no change")
	}
}

func TestAnInitialisationThatGoesOnIsNamedInWords(t *testing.T) {
	same := &apitype.StepEventStateMetadata{Inputs: map[string]any{"text": "card"}}
	for _, m := range []apitype.StepEventMetadata{
		{Op: apitype.OpUpdate, Old: same, New: same, Diffs: []string{"#initerror"}},
		{Op: apitype.OpReplace, Old: same, New: same,
			DetailedDiff: map[string]apitype.PropertyDiff{"#initerror": {Kind: apitype.DiffUpdateReplace}}},
	} {
		if got := changesOf(m); len(got) != 1 || got[0].Path != "initialisation" {
			t.Errorf("%s changes %+v", m.Op, got)
		}
	}
}
