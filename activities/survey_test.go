package activities

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// surveying begins a preview that surveys a stack with one thing in its state, which has these inputs and this id.
func surveying(
	t *testing.T, kind engine.Kind, config map[string]deployments.ConfigValue, inputs func(*house) resource.PropertyMap,
) (*house, *engine.State) {
	t.Helper()
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindRefresh})
	values := inputs(h)
	old := h.thing(values["name"].StringValue(), values, values)
	if _, err := call[struct{}](h, h.acts.Save, deployments.SaveInput{Update: h.update, Base: h.base, Number: 1,
		Deltas: []engine.Delta{{Seq: 1, Kind: engine.DeltaPut, Op: 1, State: old}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, deployments.CommitInput{
		Update: h.update, Base: h.base, Saves: 1, Result: engine.Result{Status: engine.StatusSucceeded},
	}); err != nil {
		t.Fatal(err)
	}
	release(h)
	h.claim(deployments.UpdateRequest{Kind: kind, DryRun: true, Survey: true, Config: config})
	old.Inputs, old.Outputs = h.bag(values), h.bag(values)
	return h, old
}

// seed is that of a create of the thing.
func (h *house) seed(generation int) []byte {
	h.t.Helper()
	identity, err := h.store.Identities.Of(h.t.Context(), testStack)
	if err != nil {
		h.t.Fatal(err)
	}
	return engine.SeedOf(identity.Seeds, thingURN, generation)
}

// nameOfCreate is the name that the toy generates for a create of the thing.
func (h *house) nameOfCreate(generation int) string {
	return "thing-" + hex.EncodeToString(h.seed(generation)[:4])
}

// markOfCreate is the mark of a create of the thing.
func (h *house) markOfCreate(generation int) string {
	return h.mark(h.seed(generation))
}

// findings returns what the update's log tells, of a kind.
func (h *house) findings(kind deployments.FindingKind) (found []deployments.Finding) {
	h.t.Helper()
	streams, err := h.store.Updates.Streams(h.t.Context(), h.update)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, stream := range streams {
		parts, err := h.store.Updates.ReadEvents(h.t.Context(), updates.Part{Update: h.update, Stream: stream, Number: 1},
			1000)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, part := range parts {
			for _, e := range must(eventlog.Decode(part)) {
				if e.Event == nil || e.Event.DiagnosticEvent == nil {
					continue
				}
				f, ok := deployments.ParseFinding(strings.TrimSpace(e.Event.DiagnosticEvent.Message))
				if ok && f.Kind == kind {
					found = append(found, f)
				}
			}
		}
	}
	return found
}

// orphans returns the ids of the orphans that the update's log tells of.
func (h *house) orphans() (ids []string) {
	for _, f := range h.findings(deployments.FoundOrphan) {
		ids = append(ids, f.ID)
	}
	return ids
}

func TestASurveyTellsWhatExistsAndIsNotInTheState(t *testing.T) {
	generated := func(h *house) resource.PropertyMap { return texts("name", h.nameOfCreate(0)) }
	given := func(*house) resource.PropertyMap { return texts("name", "n") }
	for name, c := range map[string]struct {
		rule    string
		declare string // what the provider says of the type
		inputs  func(*house) resource.PropertyMap
		there   func(*house) map[string]string // by id; beside the thing itself
		gone    bool
		orphans func(*house) []string
		says    string
	}{
		"what a replacement has left has another name": {rule: readName, inputs: generated,
			there:   func(h *house) map[string]string { return map[string]string{h.nameOfCreate(1): "{}", "other": "{}"} },
			orphans: func(h *house) []string { return []string{h.nameOfCreate(1)} }},
		"nothing is left": {rule: readName, inputs: generated},
		"the resource itself is gone": {rule: readName, inputs: generated, gone: true,
			there:   func(h *house) map[string]string { return map[string]string{h.nameOfCreate(1): "{}"} },
			orphans: func(h *house) []string { return []string{h.nameOfCreate(1)} }},
		"a given name has no other": {rule: readName, inputs: given,
			there: func(h *house) map[string]string { return map[string]string{h.nameOfCreate(1): "{}"} }},
		"forbidden is not absent": {rule: readName, inputs: generated,
			there: func(h *house) map[string]string { return map[string]string{h.nameOfCreate(1): "forbidden"} },
			says:  "AccessDenied"},
		"a rule that lists says where marks are": {rule: byMark, inputs: given,
			there: func(h *house) map[string]string {
				return map[string]string{"m": `{"labels": {"deployctl-mark": "` + h.markOfCreate(1) + `"}}`,
					"x": `{"labels": {"deployctl-mark": "` + strings.Repeat("0", 32) + `"}}`, "y": "{}"}
			},
			orphans: func(*house) []string { return []string{"m"} }},
		"a rule that finds one mark is asked for each": {rule: byOneMark, inputs: given,
			there: func(h *house) map[string]string {
				return map[string]string{"m": `{"labels": {"deployctl-mark": "` + h.markOfCreate(1) + `"}}`,
					"x": `{"labels": {"deployctl-mark": "` + strings.Repeat("0", 32) + `"}}`, "y": "{}"}
			},
			orphans: func(*house) []string { return []string{"m"} }},
		"without marks nothing is listed": {rule: `{"list": "property:name"}`, inputs: given,
			there: func(*house) map[string]string { return map[string]string{"x": `{"name": "n"}`} },
			says:  "no settle rule lists"},
		"a provider knows what is the stack's": {declare: `{"` + thingType + `": "read"}`, inputs: given,
			there:   func(*house) map[string]string { return map[string]string{"a": "{}", "b": "{}"} },
			orphans: func(*house) []string { return []string{"a", "b"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var config map[string]deployments.ConfigValue
			if c.rule != "" {
				config = ruled(c.rule)
			}
			h, old := surveying(t, engine.KindRefresh, config, c.inputs)
			there := map[string]string{old.ID: "{}"}
			if c.there != nil {
				for id, text := range c.there(h) {
					there[id] = text
				}
			}
			if c.gone {
				delete(there, old.ID)
			}
			if c.declare != "" {
				there[declaring] = c.declare
			}
			for id, text := range there {
				if err := os.WriteFile(filepath.Join(h.world, id), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // a step may be repeated
				result, err := h.step(engine.Step{Op: 2, Kind: engine.StepRefresh, Old: old, Preview: true}, 1)
				if err != nil || result.Outcome != engine.OutcomeDone {
					t.Fatalf("%+v %v", result, err)
				}
			}
			release(h) // writes what was said
			var want []string
			if c.orphans != nil {
				want = c.orphans(h)
			}
			if got := slices.Compact(h.orphans()); !slices.Equal(got, want) {
				t.Errorf("it tells of %q, not %q: %s", got, want, h.log())
			}
			if said := h.log(); !strings.Contains(said, c.says) {
				t.Errorf("it says %s", said)
			}
			if effects := h.effects(); len(effects) > 0 {
				t.Errorf("it had effects: %q", effects)
			}
		})
	}
}

// A list that is not whole says so, and tells what was found before.
func TestASurveyThatCannotListEverythingSaysSo(t *testing.T) {
	h, old := surveying(t, engine.KindRefresh, nil, func(*house) resource.PropertyMap { return texts("name", "n") })
	for id, text := range map[string]string{"n": "{}", "a": "{}", declaring: `{"` + thingType + `": "read"}`,
		stopListing: ""} {
		if err := os.WriteFile(filepath.Join(h.world, id), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	step := engine.Step{Op: 2, Kind: engine.StepRefresh, Old: old, Preview: true}
	if _, err := h.step(step, 1); errorType(err) != deployments.ErrorNotDone {
		t.Fatalf("a provider that is away: %v", err)
	}
	if result, err := h.step(step, 1); err != nil || result.Outcome != engine.OutcomeDone {
		t.Fatalf("%+v %v", result, err)
	}
	release(h)
	if got := slices.Compact(h.orphans()); !slices.Equal(got, []string{"a"}) {
		t.Errorf("it tells of %q", got)
	}
}

func TestASurveyOfAnUpSaysWhySomethingWasNotFound(t *testing.T) {
	for name, c := range map[string]struct {
		config map[string]deployments.ConfigValue
		says   string // "": it was found
	}{
		"it is not there":   {ruled(readName), "it was looked for as n (deployctl:settle), and is not there"},
		"there is no rule":  {nil, "no settle rule says how to find a " + thingType},
		"looking is off":    {map[string]deployments.ConfigValue{stackkeys.Look: {Value: "false"}}, stackkeys.Look},
		"nothing to find":   {ruled(`{"nothing": true}`), "nothing outside of the state"},
		"no proof":          {ruled(byMatch), "nothing would show"},
		"it fails":          {ruled(`{"read": "bad"}`), "it could not be looked for as bad"},
		"it is taken over":  {config: ruled(strings.Replace(readName, "${name}", "there", 1))},
		"it is known later": {ruled(readName), "known only after"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.claim(deployments.UpdateRequest{DryRun: true, Survey: true, Config: c.config})
			h.put("there")
			if err := os.WriteFile(filepath.Join(h.world, "bad"), []byte("no JSON"), 0o600); err != nil {
				t.Fatal(err)
			}
			inputs := texts("name", "n", "scope", "")
			if name == "it is known later" {
				inputs["name"] = resource.MakeComputed(resource.NewProperty(""))
			}
			p := engine.Plan{Op: 3, URN: thingURN, Provider: h.toy(), Seed: seedOf(thingURN), Preview: true,
				Goal: engine.Registration{Type: thingType, Name: "thing", Custom: true, Inputs: h.bag(inputs)}}
			if name != "looking is off" {
				p.Look = &engine.Look{Seeds: append(generations(), seedOf(thingURN)), First: 2, TakeOver: true}
			}
			out, err := call[deployments.PlanOutput](h, h.acts.PlanResources, deployments.PlanInput{
				Update: h.update, Base: h.base, Plans: []engine.Plan{p}})
			if err != nil || len(out.Plans) != 1 || out.Plans[0].Error != "" {
				t.Fatalf("%+v %v", out, err)
			}
			release(h)
			told := h.findings(deployments.NotFound)
			switch {
			case c.says == "" && (len(told) > 0 || out.Plans[0].Found == nil):
				t.Errorf("%+v, and it tells of %+v", out.Plans[0].Found, told)
			case c.says != "" && (len(told) != 1 || !strings.Contains(told[0].Why, c.says)):
				t.Errorf("it tells of %+v", told)
			}
		})
	}
}

// mark is the mark of the create with a seed.
func (h *house) mark(seed []byte) string {
	h.t.Helper()
	identity, err := h.store.Identities.Of(h.t.Context(), testStack)
	if err != nil {
		h.t.Fatal(err)
	}
	return lookup.New(&hosted.Update{Identity: identity}, nil).Mark(seed)
}
