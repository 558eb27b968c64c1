package activities

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// refreshThing refreshes a thing that was created with inputs, and returns how it differs and how many comparisons its
// provider has made for that.
func (h *house) refreshThing(p *engine.Provider, old *engine.State) (change engine.ChangeKind, compared int) {
	h.t.Helper()
	before := len(h.noted(comparedFile))
	result, err := call[engine.StepFinished](h, h.acts.Step, deployments.StepInput{
		Update: h.update, Base: h.base, Round: 1, Step: engine.Step{
			Op: 2, Kind: engine.StepRefresh, URN: thingURN, Type: thingType, Provider: p, Old: old,
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return result.Diff.Change, len(h.noted(comparedFile)) - before
}

func TestARefreshComparesOnceWhatStaysAsItIsStored(t *testing.T) {
	h := bench(t, nil)
	created, err := h.step(h.create(texts("name", "n", "size", "1")), 1)
	if err != nil {
		t.Fatal(err)
	}
	old := h.thing("n", h.values(*created.Inputs), h.values(created.Outputs))
	south := h.toy()
	south.Inputs = h.bag(texts("region", "south"))
	ignoring := *old
	ignoring.IgnoreChanges = []string{"zone"}
	expect := func(what string, p *engine.Provider, old *engine.State, change engine.ChangeKind, compared int) {
		t.Helper()
		if c, n := h.refreshThing(p, old); c != change || n != compared {
			t.Errorf("%s: %s after %d comparisons, want %s after %d", what, c, n, change, compared)
		}
	}
	expect("the first time", h.toy(), old, engine.ChangeNone, 1)
	expect("again", h.toy(), old, engine.ChangeNone, 0)
	expect("with another provider", south, old, engine.ChangeNone, 1)
	expect("with other options", h.toy(), &ignoring, engine.ChangeNone, 1)
	if err := os.WriteFile(filepath.Join(h.world, "n"), []byte(`{"name": "n", "size": "2"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("changed", h.toy(), old, engine.ChangeUpdate, 1)
	expect("still changed", h.toy(), old, engine.ChangeUpdate, 1)
}

// Some providers keep the declared inputs, so that what was changed is in the stored outputs after a refresh, and is
// found by comparison alone.
func TestARefreshComparesEachTimeWhatDiffersFromItsInputs(t *testing.T) {
	h := bench(t, nil)
	created, err := h.step(h.create(texts("name", "n", "do", "differ")), 1)
	if err != nil {
		t.Fatal(err)
	}
	old := h.thing("n", h.values(*created.Inputs), h.values(created.Outputs))
	for range 2 {
		if change, compared := h.refreshThing(h.toy(), old); change != engine.ChangeUpdate || compared != 1 {
			t.Errorf("%s after %d comparisons", change, compared)
		}
	}
}

func TestARefreshNeedNotCompareWhatAnUpdateHasFoundUnchanged(t *testing.T) {
	h := newHouse(t)
	up := deployments.UpdateRequest{Bundle: h.upload(scenarioProject(`
steps:
  - {register: a, type: 'toy:index:Thing', properties: {size: "1", secret: !secret hush}}
  - {register: b, type: 'toy:index:Thing', properties: {size: "1"}, options: {ignoreChanges: [size]}}
`))}
	for _, c := range []struct {
		request  deployments.UpdateRequest
		compared int
	}{{up, 0}, {up, 2}, {deployments.UpdateRequest{Kind: engine.KindRefresh}, 0}, {up, 2}} {
		before := len(h.noted(comparedFile))
		h.carryOut(c.request)
		if n := len(h.noted(comparedFile)) - before; n != c.compared {
			t.Errorf("%s: %d comparisons, want %d", c.request.Kind, n, c.compared)
		}
	}
}

func TestAnUpdateWithoutAProgramStartsItsProviderWhenItIsClaimed(t *testing.T) {
	h := newHouse(t)
	h.carryOut(deployments.UpdateRequest{
		Bundle: h.upload(scenarioProject("steps: [{register: a, type: 'toy:index:Thing'}]")),
	})
	for _, kind := range []engine.Kind{engine.KindRefresh, engine.KindDestroy} {
		if err := os.Remove(filepath.Join(h.world, startedFile)); err != nil {
			t.Fatal(err)
		}
		h.claim(deployments.UpdateRequest{Kind: kind, DryRun: true})
		waitFor(t, func() bool { _, err := os.Stat(filepath.Join(h.world, startedFile)); return err == nil })
		release(h)
	}
}
