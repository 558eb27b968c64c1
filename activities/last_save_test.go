package activities

import (
	"bytes"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/host/session"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// ending returns the end of a claimed update that has made one resource, which only its last save tells. The event of
// that names the values of the resource by what the save says of them.
func (h *house) ending() deployments.CommitInput {
	h.t.Helper()
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	made := engine.State{Key: snapshot.OpKey(1), URN: thingURN, Type: thingType,
		Outputs: h.bag(texts("note", "it-is-made"))}
	shown := made
	shown.Outputs.Inline, shown.Outputs.Ref = nil, made.Key.Ref(snapshot.PartOutputs)
	return deployments.CommitInput{Update: h.update, Base: h.base, Saves: 1,
		LastSave: &deployments.SaveInput{Update: h.update, Base: h.base, Number: 1,
			Deltas: []engine.Delta{{Seq: 1, Kind: engine.DeltaPut, Op: 1, State: &made}},
			Events: []engine.Emit{{Kind: engine.EmitOutputs, Op: 1, Step: engine.StepCreate, URN: thingURN, Type: thingType,
				New: &shown}}},
		Result: engine.Result{Status: engine.StatusSucceeded}}
}

// another has another worker take the place of that of the house: the process that had the update is gone.
func (h *house) another(objects bucket.Objects) {
	h.t.Helper()
	store, err := statestore.New(objects, statestore.Options{Master: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = store
	h.acts = New(Options{Runs: h.runs, Heart: h.heart,
		Options: session.Options{Store: store, Worker: "worker-2", Dir: h.t.TempDir()}})
	acts := h.acts
	h.t.Cleanup(func() { Close(h.t.Context(), acts) })
}

// The deltas of the last save are no object of their own: until the head names the checkpoint that has them, they are
// in the input of the activity that ends the update. So wherever that is interrupted, its next attempt makes the same
// end.
func TestAnEndThatIsInterruptedAnywhereIsMadeAgainByAnyWorker(t *testing.T) {
	for _, at := range []string{"/checkpoints/", "/events/run/00000001", "head.json", "/history/",
		"/events/run/00000002"} {
		for _, gone := range []bool{false, true} {
			objects := &refusing{Objects: &bucket.Memory{}}
			h := newHouseOn(t, objects)
			in := h.ending()
			objects.refuse("put", at, deployments.CodeUnavailable, 1)
			if _, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, in); err == nil || objects.left > 0 {
				t.Errorf("it ends though %s is not written: %v", at, err)
			}
			if gone {
				h.another(objects)
			}
			info, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, in)
			if err != nil || info.Resources != 1 || !info.Committed {
				t.Errorf("after %s (the worker is gone: %t) it ends as %+v, %v", at, gone, info, err)
			}
			h.isEnded(at)
		}
	}
}

// isEnded checks what the end of ending has left.
func (h *house) isEnded(at string) {
	h.t.Helper()
	head, err := h.store.Head(h.t.Context(), testStack)
	if err != nil || head.Active != nil || head.Version != 1 {
		h.t.Errorf("after %s the head is %+v, %v", at, head, err)
	}
	c, err := h.store.Checkpoint(h.t.Context(), testStack, 1, deployments.SecretsProvider{})
	if err != nil || len(c.States()) != 1 {
		h.t.Fatalf("after %s the state is %+v, %v", at, c, err)
	}
	values, err := c.Values(c.States()[0].Outputs.Ref)
	if err != nil || !values["note"].DeepEquals(resource.NewProperty("it-is-made")) {
		h.t.Errorf("after %s its resource has %v, %v", at, values, err)
	}
	log := h.log()
	last := -1
	for _, part := range []string{"preludeEvent", "it-is-made", "summaryEvent", `"end"`} {
		if i := strings.Index(log, part); i <= last || strings.Count(log, part) != 1 {
			h.t.Errorf("after %s the log has %q at %d: %s", at, part, i, log)
		} else {
			last = i
		}
	}
	if saved, err := h.store.Updates.LastSave(h.t.Context(), h.update); err != nil || saved != 0 {
		h.t.Errorf("after %s there are %d saves, %v", at, saved, err)
	}
}

// A save before the last one may have what the last one only names.
func TestAnEventShowsWhatAnEarlierSaveHas(t *testing.T) {
	h := newHouse(t)
	in := h.ending()
	first := *in.LastSave
	first.Events = nil
	if _, err := call[struct{}](h, h.acts.Save, first); err != nil {
		t.Fatal(err)
	}
	again := *first.Deltas[0].State
	again.Outputs.Inline, again.Outputs.Ref = nil, again.Key.Ref(snapshot.PartOutputs)
	in.Saves, in.LastSave.Number = 2, 2
	in.LastSave.Deltas = []engine.Delta{{Seq: 2, Kind: engine.DeltaPut, Op: 1, State: &again,
		Removes: []engine.Key{again.Key}}}
	if _, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, in); err != nil {
		t.Fatal(err)
	}
	if log := h.log(); !strings.Contains(log, "it-is-made") {
		t.Error(log)
	}
}
