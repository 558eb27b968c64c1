package activities

import (
	"os"
	"path/filepath"
	"testing"
	"time"

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
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(h.world, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("m", `{"name": "n", "size": "1", "region": "north"}`)
	another := *old
	another.ID = "m"
	expect("under another id", h.toy(), &another, engine.ChangeNone, 1)
	write("n", `{"name": "n", "size": "1", "region": "elsewhere"}`)
	expect("with other outputs", h.toy(), old, engine.ChangeNone, 1)
	elsewhere := h.thing("n", h.values(*created.Inputs), texts("name", "n", "size", "1", "region", "elsewhere"))
	expect("once they are stored", h.toy(), elsewhere, engine.ChangeNone, 1)
	expect("once they are stored, again", h.toy(), elsewhere, engine.ChangeNone, 0)
	write("n", `{"name": "n", "size": "2"}`)
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

func TestWhatAPreviewWouldChangeIsStillToBeCompared(t *testing.T) {
	h := newHouse(t)
	up := func(note string) deployments.UpdateRequest {
		return deployments.UpdateRequest{Bundle: h.upload(scenarioProject(
			"steps: [{register: a, type: 'toy:index:Thing', properties: {note: " + note + "}}]"))}
	}
	h.carryOut(up("old"))
	preview := up("new") // its provider finds no difference
	preview.DryRun = true
	h.carryOut(preview)
	before := len(h.noted(comparedFile))
	h.carryOut(deployments.UpdateRequest{Kind: engine.KindRefresh})
	if n := len(h.noted(comparedFile)) - before; n != 1 {
		t.Errorf("the refresh makes %d comparisons", n)
	}
}

// A later build of a provider may find differences that the one before did not.
func TestAnotherBuildOfAProviderComparesAgain(t *testing.T) {
	h := newHouse(t)
	h.carryOut(deployments.UpdateRequest{
		Bundle: h.upload(scenarioProject("steps: [{register: a, type: 'toy:index:Thing'}]")),
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, compared := range []int{1, 0, 1} {
		if compared == 1 {
			if err := os.Chtimes(self, time.Time{}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		before := len(h.noted(comparedFile))
		h.carryOut(deployments.UpdateRequest{Kind: engine.KindRefresh})
		if n := len(h.noted(comparedFile)) - before; n != compared {
			t.Errorf("the refresh makes %d comparisons, want %d", n, compared)
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
		h.awaitFile(startedFile)
		release(h)
	}
}
