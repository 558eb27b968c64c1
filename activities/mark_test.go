package activities

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

const byMark = `{"list": {"match": {"labels.deployctl-mark": "${mark}"}}, "mark": "labels.deployctl-mark",
	"proof": ["mark"]}`

// byOneMark is a rule that finds one mark at a time.
const byOneMark = `{"invoke": {"function": "toy:index:getThings", "args": {"mark": "${mark}"}, "ids": "things[*].arn",
	"after": "/"}, "mark": "labels.deployctl-mark", "proof": ["mark"]}`

// marking asks for marks.
func marking(rule string) map[string]deployments.ConfigValue {
	config := maps.Clone(ruled(rule))
	config[stackkeys.Mark] = deployments.ConfigValue{Value: "true"}
	return config
}

func labels(pairs ...string) resource.PropertyValue { return resource.NewProperty(texts(pairs...)) }

// markOf returns the mark in values.
func markOf(values resource.PropertyMap) string {
	return must(settlerule.ParseMark("labels.deployctl-mark")).Get(values)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestALostCreateIsFoundByItsMark(t *testing.T) {
	for name, c := range map[string]struct {
		config  map[string]deployments.ConfigValue
		declare resource.PropertyMap
		do      string
		outcome engine.Outcome
		says    string
	}{
		"it is there":     {config: marking(byMark), do: "die-after", outcome: "done"},
		"it is not there": {config: marking(byMark), do: "die-before", outcome: "absent"},
		"beside declared ones": {config: marking(byMark), declare: resource.PropertyMap{"labels": labels("team",
			"web")}, do: "die-after", outcome: "done"},
		"no marks are asked for": {config: ruled(byMark), do: "die-after", outcome: "undecidable",
			says: "the mark needs the stack's deployctl:mark"},
		"the program has the key": {config: marking(byMark),
			declare: resource.PropertyMap{"labels": labels("deployctl-mark", "mine")}, do: "die-after",
			outcome: "undecidable", says: "the mark"},
		"there is no place for it": {config: marking(byMark), declare: texts("labels", "a=b"), do: "die-after",
			outcome: "undecidable", says: "the mark"},
		"it shows whose a given name is": {config: marking(`[{"read": "${name}"}, ` + byMark + `]`), declare: texts("name",
			"n"), do: "die-after", outcome: "done"},
		"another thing has the name": {config: marking(`[{"read": "other", "proof": ["mark"]}, ` + byMark + `]`),
			do: "die-before", outcome: "undecidable", says: "another owner"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, c.config)
			if err := os.WriteFile(filepath.Join(h.world, "other"), []byte(`{"labels": {"deployctl-mark": "`+
				strings.Repeat("0", 32)+`"}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			inputs := texts("do", c.do)
			if c.declare["name"].V == nil {
				inputs["serverMade"] = resource.NewProperty("yes")
			}
			maps.Copy(inputs, c.declare)
			step := h.create(inputs)
			if _, err := h.step(step, 1); errorType(err) != deployments.ErrorUnknownOutcome {
				t.Fatalf("%v", err)
			}
			result, err := h.settleStep(step)
			if err != nil || result.Outcome != c.outcome || !strings.Contains(result.Error, c.says) {
				t.Fatalf("%+v %v", result, err)
			}
			if c.outcome == engine.OutcomeDone && len(markOf(h.values(*result.Inputs))) != 32 {
				t.Errorf("its inputs are %v", h.values(*result.Inputs))
			}
		})
	}
}

// TestACreateOfWhichNoMarkIsNotedWasNotSent settles creates whose attempts have ended before they called.
func TestACreateOfWhichNoMarkIsNotedWasNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		config  map[string]deployments.ConfigValue
		earlier bool // an earlier update has begun it
		declare resource.PropertyMap
		outcome engine.Outcome
	}{
		"this update puts marks":      {config: marking(byOneMark), outcome: engine.OutcomeAbsent},
		"an earlier one may not have": {config: marking(byOneMark), earlier: true, outcome: engine.OutcomeUndecidable},
		"marks are not asked for":     {config: ruled(byOneMark), outcome: engine.OutcomeUndecidable},
		"the resource has no place for it": {config: marking(byOneMark), declare: texts("labels", "a=b"),
			outcome: engine.OutcomeUndecidable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, c.config)
			inputs := texts("serverMade", "yes")
			maps.Copy(inputs, c.declare)
			step := h.create(inputs)
			if step.Since = h.update.Number(); c.earlier {
				step.Since--
			}
			if result, err := h.settleStep(step); err != nil || result.Outcome != c.outcome {
				t.Errorf("%+v %v", result, err)
			}
		})
	}
}

// TestWhatBearsTheMarkOfAnotherCreateIsNotFound has a function find all things, whatever it is asked for.
func TestWhatBearsTheMarkOfAnotherCreateIsNotFound(t *testing.T) {
	const all = `{"invoke": {"function": "toy:index:getThings",
		"args": {"all": "${absent|yes}"}, "ids": "things[*].arn", "after": "/"},
		"mark": "labels.deployctl-mark", "proof": ["mark"]}`
	h := bench(t, marking(all))
	text := `{"labels": {"deployctl-mark": "` + strings.Repeat("0", 32) + `"}}`
	if err := os.WriteFile(filepath.Join(h.world, "another"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	step := h.create(texts("serverMade", "yes", "do", "die-after"))
	if _, err := h.step(step, 1); errorType(err) != deployments.ErrorUnknownOutcome {
		t.Fatalf("%v", err)
	}
	result, err := h.settleStep(step)
	if err != nil || result.Outcome != engine.OutcomeDone || result.ID == "another" {
		t.Errorf("%+v %v", result, err)
	}
}

func TestAMarkIsNoDifference(t *testing.T) {
	mark := strings.Repeat("a1", 16)
	for name, c := range map[string]struct {
		config       map[string]deployments.ConfigValue
		before, news resource.PropertyMap
		change       engine.ChangeKind
		mark         string // in the inputs that are planned
	}{
		"nothing changes": {marking(byMark), resource.PropertyMap{"labels": labels("deployctl-mark", mark)}, nil,
			engine.ChangeNone, mark},
		"marks are not asked for any more": {ruled(byMark), resource.PropertyMap{"labels": labels("deployctl-mark", mark)},
			nil, engine.ChangeNone, mark},
		"other labels change": {marking(byMark), resource.PropertyMap{"labels": labels("deployctl-mark", mark, "a", "b")},
			resource.PropertyMap{"labels": labels("a", "c")}, engine.ChangeUpdate, mark},
		"it was made without a mark": {marking(byMark), resource.PropertyMap{"labels": labels("a", "b")},
			resource.PropertyMap{"labels": labels("a", "b")}, engine.ChangeNone, ""},
		"it has a label of the program": {marking(byMark), resource.PropertyMap{"labels": labels("deployctl-mark", "mine")},
			nil, engine.ChangeUpdate, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, c.config)
			before, news := texts("name", "n"), texts("name", "n")
			maps.Copy(before, c.before)
			maps.Copy(news, c.news)
			out, err := call[deployments.PlanOutput](h, h.acts.PlanResources, deployments.PlanInput{
				Update: h.update, Base: h.base, Plans: []engine.Plan{{
					Op: 3, URN: thingURN, Old: h.thing("n", before, before), Provider: h.toy(), Seed: seedOf(thingURN),
					Goal: engine.Registration{Type: thingType, Name: "thing", Custom: true, Inputs: h.bag(news)},
				}},
			})
			if err != nil || len(out.Plans) != 1 || out.Plans[0].Error != "" || out.Plans[0].Diff.Change != c.change {
				t.Fatalf("%+v %v", out, err)
			}
			if got := markOf(h.values(out.Plans[0].Inputs)); got != c.mark {
				t.Errorf("the mark that is planned is %q, not %q", got, c.mark)
			}
		})
	}
}
