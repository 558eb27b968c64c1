package activities

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

const (
	readName     = `{"read": "${name}"}`
	movedOrNamed = `[{"read": "${zone}"}, {"read": "${name}"}]`
)

// generations are seeds to look under, the newest first: the second is of what made makes.
func generations() [][]byte { return [][]byte{seedOf(thingURN), []byte("an earlier generation")} }

// made creates a thing of an earlier generation, and returns its id.
func made(t *testing.T, h *house) string {
	t.Helper()
	step := h.create(texts("do", ""))
	step.Op, step.URN, step.Type, step.Provider, step.Seed = 99, thingURN, thingType, h.toy(), generations()[1]
	result, err := call[engine.StepFinished](h, h.acts.Step, deployments.StepInput{Update: h.update, Base: h.base,
		Step: step, Round: 1})
	if err != nil || result.ID == "" {
		t.Fatalf("%+v %v", result, err)
	}
	return result.ID
}

func TestWhatExistsIsFoundBeforeItIsCreated(t *testing.T) {
	for name, c := range map[string]struct {
		rule     string
		inputs   resource.PropertyMap
		there    string // content of what has the name "n"
		earlier  bool   // what an earlier generation made exists
		takeOver bool
		found    engine.Found // its ID is "n", or of the earlier generation
		says     string       // the create fails with it
	}{
		"nothing is there":              {rule: readName, inputs: texts("name", "n")},
		"an earlier generation is ours": {rule: readName, earlier: true, found: engine.Found{Generation: 6}},
		"a given name proves nothing": {rule: readName, inputs: texts("name", "n"), there: "{}",
			says: "n exists already"}, // by the create
		"a given name is taken over": {rule: readName, inputs: texts("name", "n"), there: "{}", takeOver: true,
			found: engine.Found{Foreign: true}},
		"another rule takes over what has moved": {rule: movedOrNamed, inputs: texts("name", "n", "zone", "elsewhere"),
			there: "{}", takeOver: true, found: engine.Found{Foreign: true}},
		"another rule is for taking over": {rule: movedOrNamed, inputs: texts("name", "n", "zone", "elsewhere"),
			there: "{}", says: "n exists already"}, // by the create
		"there is no rule": {inputs: texts("name", "n2"), there: "{}"},
		"what has the properties need not be the one": {rule: byMatch, there: `{"name": "n"}`,
			inputs: texts("name", "n", "serverMade", "yes")},
		"forbidden is not absent": {rule: readName, inputs: texts("name", "n"), there: "forbidden",
			says: "it may exist already: AccessDenied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := ruled(c.rule)
			if c.rule == "" {
				config = nil
			}
			h := bench(t, config)
			id := "n"
			if c.earlier {
				id = made(t, h)
			}
			if c.there != "" {
				if err := os.WriteFile(filepath.Join(h.world, "n"), []byte(c.there), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := len(h.effects())
			step := h.create(c.inputs)
			step.Look = &engine.Look{Seeds: generations(), First: 7, TakeOver: c.takeOver}
			result, err := h.step(step, 1)
			if err != nil || !strings.Contains(result.Error, c.says) {
				t.Fatalf("%+v %v", result, err)
			}
			created := len(h.effects()) - before
			switch {
			case c.says != "":
				if result.Outcome != engine.OutcomeFailed || created != 0 {
					t.Errorf("%+v after %q", result, h.effects())
				}
			case c.found == engine.Found{}:
				if result.Found != nil || created != 1 {
					t.Errorf("%+v after %q", result, h.effects())
				}
			default:
				c.found.ID = id
				if result.Found == nil || *result.Found != c.found || created != 0 {
					t.Errorf("%+v, not %+v, after %q", result.Found, c.found, h.effects())
				}
			}
		})
	}
}

// TestALookThatFailsIsNoAbsence has something exist that cannot be read, or not now: nothing is created.
func TestALookThatFailsIsNoAbsence(t *testing.T) {
	for name, c := range map[string]struct {
		config map[string]deployments.ConfigValue
		there  func(h *house) map[string]string // by id
		again  bool                             // the attempt is repeated
		says   string
	}{
		"it may pass": {config: ruled(readName), again: true,
			there: func(*house) map[string]string { return map[string]string{"n": "away"} }},
		"what a function has found by its mark cannot be read": {config: marking(byOneMark), says: "update again, or set",
			there: func(h *house) map[string]string {
				return map[string]string{"m": "no JSON " + h.mark(generations()[0])}
			}},
		"nor now": {config: marking(byOneMark), again: true,
			there: func(h *house) map[string]string {
				return map[string]string{"m": "away " + h.mark(generations()[0])}
			}},
		"two bear the mark": {config: marking(byMark), says: "both a and b match",
			there: func(h *house) map[string]string {
				text := `{"labels": {"deployctl-mark": "` + h.mark(generations()[0]) + `"}}`
				return map[string]string{"a": text, "b": text}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, c.config)
			for id, text := range c.there(h) {
				if err := os.WriteFile(filepath.Join(h.world, id), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			step := h.create(texts("name", "n"))
			step.Look = &engine.Look{Seeds: generations(), First: 7}
			result, err := h.step(step, 1)
			if again := errorType(err) == deployments.ErrorNotDone; again != c.again || err != nil && !again {
				t.Errorf("%+v %v", result, err)
			}
			if err == nil && (result.Outcome != engine.OutcomeFailed || !strings.Contains(result.Error, c.says) ||
				!strings.Contains(result.Error, "it may exist already")) {
				t.Errorf("%+v", result)
			}
			if effects := h.effects(); len(effects) > 0 {
				t.Errorf("it had effects: %q", effects)
			}
		})
	}
}

// TestWhatIsFoundIsImportedByTheIDThatItWasAskedBy is of providers whose imports take another id than their resources
// have.
func TestWhatIsFoundIsImportedByTheIDThatItWasAskedBy(t *testing.T) {
	h := bench(t, ruled(readName))
	if err := os.WriteFile(filepath.Join(h.world, "n"), []byte(`{"name": "n", "knownAs": "thing/n"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	step := h.create(texts("name", "n"))
	step.Look = &engine.Look{Seeds: generations(), First: 7, TakeOver: true}
	if result, err := h.step(step, 1); err != nil || result.Found == nil || result.Found.ID != "n" {
		t.Fatalf("%+v %v", result, err)
	}
}

// TestANameThatIsMadeUpAnewIsNotLookedFor has a provider make up names whatever the seed is: the one that was sent is
// not known, and what is not found under another is no absence.
func TestANameThatIsMadeUpAnewIsNotLookedFor(t *testing.T) {
	h := bench(t, ruled(readName))
	step := h.create(texts("own", "names", "do", "die-after"))
	h.lose(step, 1)
	result, err := h.settleStep(step)
	if err != nil || result.Outcome != engine.OutcomeUndecidable || !strings.Contains(result.Error, "makes up another") {
		t.Errorf("%+v %v", result, err)
	}
}

// TestALookBeforeACreateIsRepeated has the look fail that would show later that what is found is ours.
func TestALookBeforeACreateIsRepeated(t *testing.T) {
	h := bench(t, ruled(readName))
	if err := os.WriteFile(filepath.Join(h.world, "n"), []byte("away"), 0o600); err != nil {
		t.Fatal(err)
	}
	if result, err := h.step(h.create(texts("name", "n")), 1); errorType(err) != deployments.ErrorNotDone {
		t.Errorf("%+v %v", result, err)
	}
	if effects := h.effects(); len(effects) > 0 {
		t.Errorf("it had effects: %q", effects)
	}
}

// TestWhatTheStackHasUnderAnotherNameIsNotTakenOver is of a resource that was renamed in the program, without an alias:
// its old name is deleted in the end, and with it the one thing that there is.
func TestWhatTheStackHasUnderAnotherNameIsNotTakenOver(t *testing.T) {
	h, old := surveying(t, engine.KindUp, ruled(readName), func(*house) resource.PropertyMap { return texts("name", "n") })
	h.put("n")
	step := h.create(texts("name", "n"))
	step.URN = urn.URN(strings.TrimSuffix(string(old.URN), old.URN.Name()) + "renamed")
	step.Type, step.Provider, step.Seed, step.Preview = thingType, h.toy(), seedOf(step.URN), true
	step.New.URN = step.URN
	step.Look = &engine.Look{Seeds: [][]byte{step.Seed}, First: 7, TakeOver: true}
	result, err := call[engine.StepFinished](h, h.acts.Step, deployments.StepInput{Update: h.update, Base: h.base,
		Step: step, Round: 1})
	if err != nil || result.Found != nil {
		t.Errorf("%+v, %+v %v", result, result.Found, err)
	}
	release(h)
	if said := h.log(); !strings.Contains(said, "give it the alias "+string(old.URN)) {
		t.Errorf("it says %s", said)
	}
}

func TestAPlanFindsWhatExistsAndAPreviewCreatesNothing(t *testing.T) {
	h := bench(t, ruled(readName))
	h.put("n")
	plan := func(inputs resource.PropertyMap, takeOver bool) engine.Planned {
		t.Helper()
		out, err := call[deployments.PlanOutput](h, h.acts.PlanResources, deployments.PlanInput{
			Update: h.update, Base: h.base, Plans: []engine.Plan{{
				Op: 3, URN: thingURN, Provider: h.toy(), Seed: seedOf(thingURN), Preview: true,
				Goal: engine.Registration{Type: thingType, Name: "thing", Custom: true, Inputs: h.bag(inputs)},
				Look: &engine.Look{Seeds: generations(), First: 1, TakeOver: takeOver},
			}},
		})
		if err != nil || len(out.Plans) != 1 || out.Plans[0].Error != "" {
			t.Fatalf("%+v %v", out, err)
		}
		return out.Plans[0]
	}
	if found := plan(texts("name", "n"), true).Found; found == nil || !found.Foreign || found.ID != "n" {
		t.Errorf("%+v", found)
	}
	if p := plan(texts("name", "n"), false); p.Found != nil || p.Preview.Empty() {
		t.Errorf("%+v", p)
	}
	if p := plan(texts("name", "other"), false); p.Found != nil || p.Preview.Empty() {
		t.Errorf("%+v", p)
	}
	if effects := h.effects(); slices.ContainsFunc(effects, func(e string) bool { return strings.Contains(e, "n") }) {
		t.Errorf("it made %q", effects)
	}
}

func TestACreateThatWasCalledIsNotLookedFor(t *testing.T) {
	h := bench(t, ruled(readName))
	step := h.create(texts("name", "n", "do", "die-after"))
	step.Look = &engine.Look{Seeds: generations()[:1]}
	h.lose(step, 1)
	if result, err := h.step(step, 2); err != nil || result.Found != nil {
		t.Errorf("%+v %v", result, err)
	}
}
