package engine_test

import (
	"testing"

	"github.com/deployctl/deployctl/engine"
)

// TestAPreviewThatIsPutAwayKeepsItsValues: nothing of it was saved that could be referred to.
func TestAPreviewThatIsPutAwayKeepsItsValues(t *testing.T) {
	goal := engine.Goal{Kind: engine.KindUp, DryRun: true, Organization: "o", Project: "p", Stack: "s", Parallel: 1}
	r := engine.New(goal, nil, nil)
	r.Handle(engine.RunStarted{Epoch: 1})
	bag := engine.Bag{Inline: []byte(`{"a":1}`), Digest: "d"}
	r.Handle(engine.Registered{Epoch: 1, Seq: 1, Registration: engine.Registration{Type: "my:index:Component", Name: "c", Inputs: bag, Digest: "g"}})
	for len(r.Ready()) > 0 {
	}
	data, err := r.Suspend()
	if err != nil {
		t.Fatal(err)
	}
	if r, err = engine.Resume(goal, nil, nil, data); err != nil {
		t.Fatal(err)
	}
	if states, _ := r.Snapshot(); len(states) != 1 || string(states[0].Inputs.Inline) != string(bag.Inline) {
		t.Errorf("it holds %+v", states)
	}
}
