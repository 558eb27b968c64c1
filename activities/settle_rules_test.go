package activities

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// ruled has a settle rule for things.
func ruled(rule string) map[string]deployments.ConfigValue {
	return map[string]deployments.ConfigValue{stackkeys.Settle: {Value: `{"` + thingType + `": ` + rule + `,
		"toy": {"values": {"account": [{"function": "toy:index:broken", "result": "x"},
			{"function": "toy:index:getAccount", "result": "account"}]}}}`}}
}

const (
	byScope    = `{"read": "${config:region}_${realm}_${scope}_${name}"}`
	byAccount  = `{"read": "${value:account}_${realm|other}_${scope}_${name}"}`
	byQuery    = `{"list": {"query": {"name": "${name}"}}}`
	byMatch    = `{"list": {"match": {"name": "${name}", "size": "${size|}"}}}`
	byFunction = `{"invoke": {"function": "toy:index:getThings", "args": {"name": "${name}"}, "ids": "things[*].arn",
		"after": "/"}}`
)

func TestALostCreateIsFoundByWhatItsIDIsMadeOf(t *testing.T) {
	scoped, made := texts("scope", "s"), texts("serverMade", "yes")
	for name, c := range map[string]struct {
		rule    string
		inputs  resource.PropertyMap
		before  map[string]string // things in the world before the create
		do      string
		outcome engine.Outcome
		says    string
	}{
		"a template":                      {rule: byScope, inputs: scoped, do: "die-after", outcome: "done"},
		"a template, and it is not there": {rule: byScope, inputs: scoped, do: "die-before", outcome: "absent"},
		"a value that a function knows":   {rule: byAccount, inputs: scoped, do: "die-after", outcome: "done"},
		"a query":                         {rule: byQuery, inputs: made, do: "die-after", outcome: "done"},
		"a query, and it is not there":    {rule: byQuery, inputs: made, do: "die-before", outcome: "absent"},
		"a match":                         {rule: byMatch, inputs: made, do: "die-after", outcome: "done"},
		"a function":                      {rule: byFunction, inputs: made, do: "die-after", outcome: "done"},
		"a function, and it is not there": {rule: byFunction, inputs: made, do: "die-before", outcome: "absent"},
		"the first rule that can be used": {rule: `[{"read": "${absent}"}, ` + byScope + `]`, inputs: scoped,
			do: "die-after", outcome: "done"},
		"a create that may be repeated":    {rule: `{"repeat": true}`, do: "die-after", outcome: "undecidable"},
		"a create that is nothing outside": {rule: `{"nothing": true}`, do: "die-after", outcome: "absent"},
		"a rule for later versions is none": {rule: `{"read": "${name}", "versions": ">=1.0.0"}`, do: "die-after",
			outcome: "done"},
		"no rule can be used": {rule: `{"read": "${absent}"}`, do: "die-after", outcome: "undecidable",
			says: "the input absent has no value (read of deployctl:settle)"},
		"a rule must not see a secret": {rule: `{"read": "${secret}"}`,
			inputs: resource.PropertyMap{"secret": resource.MakeSecret(resource.NewProperty("hunter2"))}, do: "die-after",
			outcome: "undecidable", says: "the input secret is secret"},
		"an id that would be empty is none": {rule: `{"read": "${absent|}"}`, do: "die-after", outcome: "undecidable",
			says: "no text of 1 to 2048 printable bytes"},
		"a function that refuses": {rule: strings.Replace(byFunction, "getThings", "broken", 1),
			do: "die-after", outcome: "undecidable", says: "access is denied"},
		"a default of Check is no proof": {rule: byScope, inputs: texts("scope", "s", "name", "n"),
			before: map[string]string{"north_main_s_n": "{}"}, do: "die-before", outcome: "undecidable", says: "another owner"},
		"nothing is to prove that it is ours": {rule: strings.Replace(byScope, "{", `{"proof": [], `, 1), inputs: scoped,
			do: "die-after", outcome: "undecidable", says: "another owner"},
		"only absence before is to prove it": {rule: strings.Replace(byScope, "{", `{"proof": ["absence"], `, 1),
			inputs: scoped, do: "die-after", outcome: "done"},
		"more resources than the rule expects": {rule: strings.Replace(byMatch, "{", `{"items": 1, `, 1), inputs: made,
			before: map[string]string{"a": "{}", "b": "{}"}, do: "die-after", outcome: "undecidable",
			says: "more than 1 resources"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, ruled(c.rule))
			for id, text := range c.before {
				if err := os.WriteFile(filepath.Join(h.world, id), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			inputs := texts("do", c.do)
			for key, v := range c.inputs {
				inputs[key] = v
			}
			step := h.create(inputs)
			if _, err := h.step(step, 1); errorType(err) != deployments.ErrorUnknownOutcome {
				t.Fatalf("%v", err)
			}
			result, err := h.settleStep(step)
			if err != nil || result.Outcome != c.outcome || !strings.Contains(result.Error, c.says) {
				t.Fatalf("%+v %v", result, err)
			}
			if strings.Contains(result.Error, "hunter2") {
				t.Errorf("it tells a secret: %s", result.Error)
			}
			if c.outcome == engine.OutcomeDone && (result.ID == "" || result.Inputs == nil || result.Outputs.Empty()) {
				t.Errorf("%+v", result)
			}
		})
	}
}

// A name that is generated for a create is a proof, so nothing is asked before it. One that is given needs a look.
func TestWhatIsGeneratedForACreateNeedsNoLookBefore(t *testing.T) {
	for name, c := range map[string]struct {
		inputs resource.PropertyMap
		looks  int
	}{
		"a generated name": {texts("serverMade", "yes"), 0},
		"a given name":     {texts("serverMade", "yes", "name", "n"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, ruled(byFunction))
			if result, err := h.step(h.create(c.inputs), 1); err != nil || result.Outcome != engine.OutcomeDone {
				t.Fatalf("%+v %v", result, err)
			}
			if asked := h.noted(askedFunctions); len(asked) != c.looks {
				t.Errorf("%d looks: %q", len(asked), asked)
			}
		})
	}
}

func TestAValueIsAskedForOnceInAnUpdate(t *testing.T) {
	h := bench(t, ruled(byAccount))
	for i, name := range []string{"a", "b", "c"} {
		step := h.create(texts("scope", "s", "name", name))
		step.Op = i + 1
		if result, err := h.step(step, 1); err != nil || result.Outcome != engine.OutcomeDone {
			t.Fatalf("%+v %v", result, err)
		}
	}
	if asked := h.noted(askedFunctions); len(asked) != 1 {
		t.Errorf("%q", asked)
	}
}

// What a plugin answers may be of any size: a list of ids is not kept before they are looked at.
func TestAListEndsWithTheFirstIDThatIsNone(t *testing.T) {
	h := bench(t, ruled(byMatch))
	for _, name := range []string{"\x01", "a", "b"} {
		h.put(name)
	}
	step := h.create(texts("serverMade", "yes", "do", "die-after"))
	h.lose(step, 1)
	before := len(h.noted(askedLists))
	result, err := h.settleStep(step)
	if err != nil || !strings.Contains(result.Error, "an id that is no text of 1 to 2048 printable bytes") {
		t.Errorf("%+v %v", result, err)
	}
	if asked := h.noted(askedLists)[before:]; len(asked) != 1 {
		t.Errorf("the pages after %q are read", asked)
	}
}

func TestAnAmbiguousErrorOfACreateThatMayBeRepeatedRepeatsIt(t *testing.T) {
	h := bench(t, ruled(`{"repeat": true}`))
	_, err := h.step(h.create(texts("name", "n", "do", "fail-before: "+text500)), 1)
	if errorType(err) != deployments.ErrorNotDone {
		t.Errorf("%v", err)
	}
}

func TestWithoutARuleTheErrorSaysWhichWouldHelp(t *testing.T) {
	for config, says := range map[string]string{
		"": `found by deployctl:settle {"` + thingType +
			`": {"read": "${name}"}} if that input is its id`,
		`{"read": "${absent}"}`:                   "no settle rule can be used: the input absent has no value",
		`{"read": "${absent|n}"}`:                 "",
		`{"list": {"match": {"x": "${secret}"}}}`: "the input secret is secret",
	} {
		h := bench(t, nil)
		if config != "" {
			h = bench(t, ruled(config))
		}
		inputs := texts("name", "n", "do", "fail-before: "+text500)
		inputs["secret"] = resource.MakeSecret(resource.NewProperty("hunter2"))
		result, err := h.step(h.create(inputs), 1)
		if err != nil || result.Evidence == nil || !strings.Contains(result.Evidence.Looked, says) ||
			result.Evidence.Look != (says == "") {
			t.Errorf("%s: %+v %v", config, result.Evidence, err)
		}
	}
}

func TestTheStacksRulesGoBeforeThoseOfTheCatalogue(t *testing.T) {
	var asked []string
	catalogue := func(
		_ context.Context, typ, version string, _ func(context.Context, string) ([]byte, error),
	) (settlerule.Set, bool, error) {
		asked = append(asked, typ)
		var rules settlerule.Rules
		err := rules.UnmarshalJSON([]byte(`{"read": "${value:account}_${realm}_${scope}_${name}"}`))
		return settlerule.Set{Rules: rules, From: "catalogue/toy.yaml"}, true, err
	}
	for name, rule := range map[string]string{
		"the stack has none that can be used": `{"read": "${absent}"}`,
		"the stack has one":                   byScope,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.acts.sessions.Catalogue = func() settlerule.Catalogue { return catalogue }
			var counted []string
			h.acts.sessions.CountSettled = func(pkg, rule, result string) { counted = append(counted, pkg+" "+rule+" "+result) }
			h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy, Config: ruled(rule)})
			step := h.create(texts("scope", "s", "do", "die-after"))
			if _, err := h.step(step, 1); errorType(err) != deployments.ErrorUnknownOutcome {
				t.Fatalf("%v", err)
			}
			if result, err := h.settleStep(step); err != nil || result.Outcome != engine.OutcomeDone {
				t.Errorf("%+v %v", result, err)
			}
			if !slices.Equal(counted, []string{"toy read found"}) {
				t.Errorf("%q", counted)
			}
		})
	}
	if len(asked) != 2 { // once for each update
		t.Errorf("the catalogue was asked %q", asked)
	}
}

func TestARuleIsTriedOnAResourceThatExists(t *testing.T) {
	marks := map[string]string{"north_main_s_n": strings.Repeat("a1", 16), "other": strings.Repeat("b2", 16)}
	for rule, says := range map[string]string{
		byScope:                 "would be looked for as north_main_s_n (deployctl:settle), and would be found",
		`{"read": "${name}"}`:   "would not be found although it exists",
		`{"read": "other"}`:     "another resource would be found: other, not north_main_s_n",
		byFunction:              "would be looked for by toy:index:getThings (deployctl:settle), and would be found",
		`{"read": "${absent}"}`: "could not be looked for: no settle rule can be used",
		`{"nothing": true}`:     "would be made again: nothing",
		strings.Replace(byFunction, "getThings", "broken", 1): "which fails: toy:index:broken: access is denied",
		byOneMark: "and would be found; that it is ours is shown by its mark",
	} {
		t.Run(rule, func(t *testing.T) {
			h := newHouse(t)
			h.claim(deployments.UpdateRequest{Kind: engine.KindRefresh, DryRun: true, TrySettle: true, Config: ruled(rule)})
			for _, id := range []string{"north_main_s_n", "other"} {
				if err := os.WriteFile(filepath.Join(h.world, id), []byte(`{"name": "`+id[len(id)-1:]+
					`", "labels": {"deployctl-mark": "`+marks[id]+`"}}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			inputs := texts("name", "n", "scope", "s", "realm", "main")
			inputs["labels"] = labels("deployctl-mark", marks["north_main_s_n"])
			old := h.thing("north_main_s_n", inputs, inputs)
			step := engine.Step{Op: 2, Kind: engine.StepRefresh, Old: old, Preview: true}
			if result, err := h.step(step, 1); err != nil || result.Outcome != engine.OutcomeDone {
				t.Fatalf("%+v %v", result, err)
			}
			release(h) // writes what was said
			if said := h.log(); !strings.Contains(said, says) {
				t.Errorf("it says %s, not %s", said, says)
			}
			if effects := h.effects(); len(effects) > 0 {
				t.Errorf("it had effects: %q", effects)
			}
		})
	}
}

// TestWhatAProviderDeclaresOfSettlingIsBounded has a provider know of rules, so that each error of it is definite,
// unless it says more of them than is kept.
func TestWhatAProviderDeclaresOfSettlingIsBounded(t *testing.T) {
	for pad, kept := range map[int]bool{10: true, 1 << 20: false} {
		h := bench(t, nil)
		text := `{"` + thingType + `": "read", "toy:index:Pad": "` + strings.Repeat("x", pad) + `"}`
		if err := os.WriteFile(filepath.Join(h.world, declaring), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		result, err := h.step(h.create(texts("name", "n", "do", "fail-before: "+text500)), 1)
		if err != nil || result.Evidence == nil || (result.Evidence.Class == engine.ErrorDefinite) != kept {
			t.Errorf("of %d bytes: %+v, %+v %v", len(text), result, result.Evidence, err)
		}
	}
}
