package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
)

// TestAPreviewThatIsPutAwayKeepsItsValues: nothing of it was saved that could be referred to.
func TestAPreviewThatIsPutAwayKeepsItsValues(t *testing.T) {
	goal := engine.Goal{Kind: engine.KindUp, DryRun: true, Organization: "o", Project: "p", Stack: "s", Parallel: 1}
	r := engine.New(goal, nil, nil)
	r.Handle(engine.RunStarted{Epoch: 1})
	bag := engine.Bag{Inline: []byte(`{"a":1}`), Digest: "d"}
	r.Handle(engine.Registered{Epoch: 1, Seq: 1, Registration: engine.Registration{Type: "my:index:Component",
		Name: "c", Inputs: bag, Digest: "g"}})
	for !r.Ready().Empty() {
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

// TestARunThatIsPutAwayCarriesNoValuesOfWhatHasEnded counts bytes: what is put away must not grow with the size of
// values.
func TestARunThatIsPutAwayCarriesNoValuesOfWhatHasEnded(t *testing.T) {
	const resources, size = 50, 8 << 10
	goal := engine.Goal{Kind: engine.KindUp, Project: "p", Stack: "s", Parallel: resources}
	large := func(of byte) engine.Bag {
		return engine.Bag{Inline: []byte(`"` + strings.Repeat(string(of), size) + `"`), Digest: "digest " + string(of)}
	}
	var base []engine.State
	for i := range resources {
		u := urn.New("s", "p", "", "test:x:R", fmt.Sprint("r", i))
		base = append(base, engine.State{URN: u, Type: "test:x:R", Custom: true, ID: "id", Inputs: large('a'),
			Outputs: large('b')})
	}
	r := engine.New(goal, base, nil)
	r.Handle(engine.RunStarted{Epoch: 1})
	for i := range resources {
		r.Handle(engine.Registered{Epoch: 1, Seq: i + 1, Registration: engine.Registration{
			Type: "test:x:R", Name: fmt.Sprint("r", i), Custom: true, Inputs: large('c'), Digest: "goal",
		}})
	}
	for ready := r.Ready(); !ready.Empty(); ready = r.Ready() {
		for _, c := range ready.Start {
			switch c := c.(type) {
			case engine.Plan:
				r.Handle(engine.Planned{Op: c.Op, Inputs: large('d'), Diff: engine.Diff{Change: engine.ChangeUpdate}})
			case engine.Step:
				r.Handle(engine.StepFinished{Op: c.Op, Outcome: engine.OutcomeDone, ID: "id", Outputs: large('e')})
			}
		}
	}
	data, err := r.Suspend()
	if err != nil {
		t.Fatal(err)
	}
	if each := len(data) / resources; each > 2<<10 {
		t.Errorf("%d bytes for each resource", each)
	}
}

// TestNoCascadeStartsBesideASweepThatWasSuspended suspends a run whose driver holds it: two resources are to be deleted
// before they are replaced, and a copy that is left over is in the way of the first. The members of two cascades may
// overlap, so the second is found only after the first has deleted what is in its way.
func TestNoCascadeStartsBesideASweepThatWasSuspended(t *testing.T) {
	goal := engine.Goal{Kind: engine.KindUp, Project: "proj", Stack: "dev", Parallel: 4}
	state := func(name, id string, on ...urn.URN) engine.State {
		return engine.State{URN: urn.New("dev", "proj", "", "test:x:R", name), Type: "test:x:R", Custom: true, ID: id,
			Dependencies: on, Inputs: engine.Bag{Digest: "1"}, Outputs: engine.Bag{Digest: "1"}}
	}
	net, disk := state("net", "net-0"), state("disk", "disk-0")
	old := state("web", "web-old", net.URN)
	old.Delete = true
	base := []engine.State{net, disk, old, state("web", "web-0", net.URN), state("log", "log-0", disk.URN)}
	r := engine.New(goal, base, nil)
	r.Handle(engine.RunStarted{Epoch: 1})
	for i, name := range []string{"net", "disk"} {
		r.Handle(engine.Registered{Epoch: 1, Seq: i + 1, Registration: engine.Registration{
			Type: "test:x:R", Name: name, Custom: true, Inputs: engine.Bag{Digest: "2"}, Digest: name,
		}})
	}
	replace := engine.Diff{Change: engine.ChangeReplace, DeleteBeforeReplace: true}
	for _, c := range r.Ready().Start {
		r.Handle(engine.Planned{Op: c.(engine.Plan).Op, Inputs: engine.Bag{Digest: "2"}, Diff: replace})
	}
	cascade := r.Ready().Start[0].(engine.Cascade)
	r.Handle(engine.CascadePlanned{Op: cascade.Op, Members: []engine.Dependent{{Key: cascade.Candidates[0].Key}}})
	data, err := r.Suspend()
	if err != nil {
		t.Fatal(err)
	}
	if r, err = engine.Resume(goal, base, nil, data); err != nil {
		t.Fatal(err)
	}
	starts := r.Ready().Start
	if step, ok := starts[0].(engine.Step); len(starts) != 1 || !ok || step.Old.ID != "web-old" {
		t.Errorf("it starts %+v, not only the deletion of the copy", starts)
	}
}

// TestARunOfAnEarlierBuildIsInquiredAboutAsBefore resumes a run as earlier builds have stored it: without what a create
// that waits for a person was inquired about. The person says that it was not made.
func TestARunOfAnEarlierBuildIsInquiredAboutAsBefore(t *testing.T) {
	goal := engine.Goal{Kind: engine.KindUp, Project: "proj", Stack: "dev", Parallel: 4, WaitOnUnknown: true}
	refused := engine.StepFinished{Outcome: engine.OutcomeFailed, Error: "500"}
	doubtful := refused
	doubtful.Evidence = &engine.Evidence{Class: engine.ErrorAmbiguous, Look: true}
	lost, absent := engine.StepFinished{Outcome: engine.OutcomeUnknown}, engine.StepFinished{Outcome: engine.OutcomeAbsent}
	for about, c := range map[string]struct {
		answers []engine.StepFinished
		want    string
	}{
		"error": {[]engine.StepFinished{doubtful}, "500; the error is ambiguous: somebody has looked for it, and it is " +
			"not there"},
		"earlier": {[]engine.StepFinished{lost, absent, refused}, "500"},
	} {
		r := engine.New(goal, nil, nil)
		r.Handle(engine.RunStarted{Epoch: 1})
		r.Handle(engine.Registered{Epoch: 1, Seq: 1, Registration: engine.Registration{
			Type: "test:x:R", Name: "net", Custom: true, Digest: "1",
		}})
		var create engine.Step
		for _, ev := range append(c.answers, engine.StepFinished{Outcome: engine.OutcomeUndecidable}) {
			switch cmd := r.Ready().Start[0].(type) {
			case engine.Step:
				create = cmd
			case engine.Settle:
			default:
				t.Fatalf("%s: it starts %+v", about, cmd)
			}
			ev.Op = create.Op
			r.Handle(ev)
		}
		r.Ready()
		data, err := r.Suspend()
		if err != nil {
			t.Fatal(err)
		}
		if doubted := bytes.Contains(data, []byte(`"Doubted":true`)); doubted != (about == "error") {
			t.Errorf("%s: earlier builds read %s", about, data)
		}
		earlier := bytes.ReplaceAll(data, fmt.Appendf(nil, `"Inquiry":%q,`, about), nil)
		if bytes.Equal(data, earlier) {
			t.Fatalf("%s is not stored: %s", about, data)
		}
		if r, err = engine.Resume(goal, nil, nil, earlier); err != nil {
			t.Fatal(err)
		}
		r.Handle(engine.Resolved{URN: create.URN})
		r.Handle(engine.ProgramExited{Epoch: 1})
		told := func(e engine.Emit) bool { return e.Severity == "error" && e.Message == c.want }
		if ready := r.Ready(); !slices.ContainsFunc(ready.Events, told) {
			t.Errorf("%s: it is not told %q, but %+v", about, c.want, ready.Events)
		}
		if _, ended := r.Result(); !ended {
			t.Errorf("%s: the update has not ended", about)
		}
	}
}
