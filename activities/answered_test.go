package activities

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
)

// made makes a resource by the first step of an update.
func (h *house) made() (again func()) {
	h.t.Helper()
	step := h.create(texts("name", "n"))
	if result, err := h.step(step, 1); err != nil || result.Outcome != engine.OutcomeDone {
		h.t.Fatalf("%+v %v", result, err)
	}
	before := len(h.effects())
	return func() {
		h.t.Helper()
		result, err := h.step(step, 1)
		if errorType(err) != deployments.ErrorUnknownOutcome || len(h.effects()) != before {
			h.t.Errorf("the step comes to %+v, %v, and has %d effects, not %d", result, err, len(h.effects()), before)
		}
	}
}

func TestAStepThatWasAnsweredIsNotMadeAgainAfterARelease(t *testing.T) {
	t.Parallel()
	h := bench(t, nil)
	again := h.made()
	for range 2 {
		if _, err := call[struct{}](h, h.acts.EndSession, deployments.ReleaseInput{Update: h.update}); err != nil {
			t.Fatal(err)
		}
		again()
	}
	if hosted := Hosted(h.acts); len(hosted) != 1 || hosted[0] != h.update {
		t.Errorf("the worker remembers %v", hosted)
	}
	Forget(t.Context(), h.acts, h.update)
	if hosted := Hosted(h.acts); len(hosted) != 0 {
		t.Errorf("after the end of its workflow the worker remembers %v", hosted)
	}
}

func TestAStepThatWasAnsweredIsNotMadeAgainByAnotherWorker(t *testing.T) {
	t.Parallel()
	h := bench(t, nil)
	again := h.made()
	if _, err := call[struct{}](h, h.acts.Save, deployments.SaveInput{Update: h.update, Base: h.base, Number: 1,
		Deltas: []engine.Delta{{Seq: 1, Kind: engine.DeltaEnd, Op: 1}}}); err != nil {
		t.Fatal(err)
	}
	o := h.acts.Options
	o.Worker, o.Dir = "worker-2", t.TempDir()
	h.acts = New(o)
	t.Cleanup(func() { Close(t.Context(), h.acts) })
	h.reclaim(deployments.UpdateRequest{})
	again()
}

func TestAnUpdateEndsByItsOwnRunAndWithAResult(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	in := deployments.CommitInput{Update: h.update, Base: h.base}
	settled := func() error { _, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, in); return err }
	if err := settled(); errorType(err) != string(deployments.CodeConflict) {
		t.Errorf("without a result it ends with %v", err)
	}
	in.Result.Status = engine.StatusSucceeded
	if _, err := call[struct{}](h, h.acts.Save, deployments.SaveInput{Update: h.update, Number: 1,
		Deltas: []engine.Delta{{Seq: 1, Kind: engine.DeltaEnd, Op: 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := settled(); errorType(err) != string(deployments.CodeConflict) {
		t.Errorf("without what it has saved it ends with %v", err)
	}
	in.Saves = 1
	if err := settled(); err != nil {
		t.Fatal(err)
	}
	other := deployments.UpdateName{StackName: testStack, Version: "2"}
	if _, err := h.store.Claim(t.Context(), statestore.Claimant{Update: other, Run: "another", Writer: "w"}); err != nil {
		t.Fatal(err)
	}
	err := h.store.Updates.PutRequest(t.Context(), other, deployments.UpdateRequest{Kind: engine.KindDestroy})
	if err != nil {
		t.Fatal(err)
	}
	in.Update, in.Base, in.Saves = other, 1, 0
	if err := settled(); errorType(err) != string(deployments.CodeConflict) {
		t.Errorf("by another run it ends with %v", err)
	}
}

func TestASaveWithoutDeltasIsMissedWhenItIsGone(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	for n := range 2 {
		if _, err := call[struct{}](h, h.acts.Save, deployments.SaveInput{Update: h.update, Number: n + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if last, err := h.store.Updates.LastSave(t.Context(), h.update); err != nil || last != 2 {
		t.Errorf("the last save is %d, %v", last, err)
	}
}
