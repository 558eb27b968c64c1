package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// slowPart is a part that gets its address at the third look. Each look leaves a byte in its file.
type slowPart struct{ part }

type slowOut struct {
	partIn
	Address string `pulumi:"address"`
}

func (p slowPart) Reconcile(_ context.Context, r provider.Request[partIn, slowOut]) (string, slowOut, error) {
	file := filepath.Join(p.dir, r.News.Name)
	looks, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", slowOut{}, err
	}
	if err := os.WriteFile(file, append(looks, '.'), 0o600); err != nil {
		return "", slowOut{}, err
	}
	out := slowOut{partIn: r.News}
	if len(looks) < 2 {
		return r.News.Name, out, &provider.NotReady{For: "an address for " + r.News.Name}
	}
	out.Address = "10.0.0.1"
	return r.News.Name, out, nil
}

func (p slowPart) Delete(_ context.Context, e provider.Existing[partIn, slowOut]) error {
	return os.Remove(filepath.Join(p.dir, e.ID))
}

// TestWhatIsNotReadyIsLookedAtUntilItIsThroughTheRealCore holds that the program gets the outputs of a resource when it
// is ready, and not before, that it is one create, and that the next update has nothing to do.
func TestWhatIsNotReadyIsLookedAtUntilItIsThroughTheRealCore(t *testing.T) {
	h := newHouse(t)
	program := h.upload(scenarioProject(`
steps:
  - {register: a, type: 'parts:index:Slow', properties: {name: a}}
  - {register: b, type: 'toy:index:Thing', properties: {name: "b-${a.address}"}}
`))
	result, run := h.carryOut(deployments.UpdateRequest{Bundle: program})
	if result.Status != engine.StatusSucceeded || result.Changes["create"] != 3 || result.Changes["update"] != 0 {
		t.Fatalf("%+v %+v", result, run.emits)
	}
	looks, err := os.ReadFile(filepath.Join(h.world, "a"))
	if err != nil || len(looks) != 3 {
		t.Errorf("it was looked at %d times (%v)", len(looks), err)
	}
	var messages []string
	for _, e := range run.emits {
		if e.Kind == engine.EmitDiagnostic {
			messages = append(messages, e.Message)
		}
	}
	want := []string{"a exists, and is not ready: it waits for an address for a", "a is ready"}
	if !slices.Equal(messages, want) {
		t.Errorf("the update says %q", messages)
	}
	for _, d := range run.deltas {
		if d.State == nil || d.State.Type != thingType {
			continue
		}
		if got := h.values(d.State.Inputs)["name"]; !got.DeepEquals(resource.NewProperty("b-10.0.0.1")) {
			t.Errorf("what uses the address has %v", got)
		}
	}
	result, run = h.carryOut(deployments.UpdateRequest{Bundle: program})
	if result.Status != engine.StatusSucceeded || result.Changes["same"] != 3 {
		t.Errorf("the next update: %+v %+v", result, run.emits)
	}
}

// TestACoreThatDoesNotWaitIsToldThatWhatIsNotReadyHasNotInitialised holds that a Run of an earlier build does not take
// what is not ready for done: it does not know Awaited.
func TestACoreThatDoesNotWaitIsToldThatWhatIsNotReadyHasNotInitialised(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	for op, want := range []engine.Outcome{engine.OutcomePartial, engine.OutcomeDone} {
		step := h.createPart("parts:index:Slow", fmt.Sprint("part-", op))
		waits := want == engine.OutcomeDone
		step.Op, step.Await = 10+op, waits
		result, err := call[engine.StepFinished](h, h.acts.Step,
			deployments.StepInput{Update: h.update, Base: h.base, Step: step, Round: 1})
		if err != nil || result.Outcome != want || (result.Awaited != nil) != waits || len(result.InitErrors) != 1 {
			t.Errorf("of one that waits (%v): %+v %v", waits, result, err)
		}
	}
}
