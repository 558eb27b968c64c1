package activities

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// The texts of errors, all with code Unknown, as bridged providers report them.
const (
	text500 = "creating Thing (n): operation error Toy: CreateThing, https response error StatusCode: 500, api error " +
		"InternalFailure: the cloud stumbled"
	text409 = "creating Thing (n): operation error Toy: CreateThing, https response error StatusCode: 409, " +
		"EntityAlreadyExists: Thing with name n already exists."
	text400 = "creating Thing (n): operation error Toy: CreateThing, https response error StatusCode: 400, api error " +
		"ValidationException: no"
	text429 = "operation error Toy: CreateThing, https response error StatusCode: 429, api error TooManyRequests: slow"
)

// byName finds things by their name.
var byName = map[string]deployments.ConfigValue{stackkeys.Settle: {Value: `{"` + thingType +
	`": {"read": "property:name"}}`}}

// settleAfter settles a step whose error leaves open whether it had its effect, as the core does.
func (h *house) settleAfter(s engine.Step, e *engine.Evidence) (engine.StepFinished, error) {
	s.URN, s.Type, s.Provider, s.Seed = thingURN, thingType, h.toy(), seedOf(thingURN)
	return call[engine.StepFinished](h, h.acts.Settle, deployments.SettleInput{
		Update: h.update, Base: h.base, Round: 1, Settle: engine.Settle{Step: s, After: e},
	})
}

func TestAFailedCreateIsLookedForUnlessItsErrorIsDefinite(t *testing.T) {
	for name, c := range map[string]struct {
		config  map[string]deployments.ConfigValue
		name    string // given by the program
		foreign bool   // a thing of another owner has it
		do      string
		class   engine.ErrorClass
		outcome engine.Outcome // of the look; "" if there is none
	}{
		"the effect came before a 500":        {byName, "", false, "fail-after: " + text500, "ambiguous", "done"},
		"the same with a given name":          {byName, "n", false, "fail-after: " + text500, "ambiguous", "done"},
		"a 500 came before the effect":        {byName, "", false, "fail-before: " + text500, "ambiguous", "absent"},
		"nobody knows the error":              {byName, "", false, "fail-after: the moon is full", "unknown", "done"},
		"it exists, and did not before":       {byName, "n", false, "fail-after: " + text409, "exists already", "done"},
		"it exists, and did before":           {byName, "n", true, "fail-before: " + text409, "exists already", "absent"},
		"a 500 while another has the name":    {byName, "n", true, "fail-before: " + text500, "ambiguous", "undecidable"},
		"the error is definite":               {byName, "", false, "fail-after: " + text400, "definite", ""},
		"no rule says how to find it":         {nil, "", false, "fail-after: " + text500, "ambiguous", ""},
		"the stack knows that it is definite": {classed("definite"), "", false, "fail-before: " + text500, "definite", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, c.config)
			inputs := texts("do", c.do)
			if c.name != "" {
				inputs = texts("do", c.do, "name", c.name)
			}
			if c.foreign {
				if err := os.WriteFile(filepath.Join(h.world, c.name), []byte(`{"name": "n"}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			step := h.create(inputs)
			failed, err := h.step(step, 1)
			if err != nil || failed.Outcome != engine.OutcomeFailed || failed.Evidence == nil ||
				failed.Evidence.Class != c.class || failed.Evidence.Look != (c.outcome != "") {
				t.Fatalf("%+v, %+v %v", failed, failed.Evidence, err)
			}
			if c.outcome == "" {
				return
			}
			found, err := h.settleAfter(step, failed.Evidence)
			if err != nil || found.Outcome != c.outcome ||
				c.foreign != strings.Contains(found.Error, "another owner") {
				t.Fatalf("%+v %v", found, err)
			}
			if c.outcome == engine.OutcomeDone && (found.ID == "" || found.Inputs == nil || found.Outputs.Empty()) {
				t.Errorf("%+v", found)
			}
			if n := len(h.effects()); n > 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}

// classed has the rule of byName, and says the class of a 500.
func classed(class string) map[string]deployments.ConfigValue {
	return map[string]deployments.ConfigValue{stackkeys.Settle: byName[stackkeys.Settle],
		stackkeys.Errors: {Value: `{"toy": [{"class": "` + class + `", "http": ["500"]}]}`}}
}

// TestACreateThatEndedInTheMiddleIsGoneOnWith has a create fail whose resource is there, and is not as declared: the
// core makes an update of it at once, or leaves that to the next update if it does not wait.
func TestACreateThatEndedInTheMiddleIsGoneOnWith(t *testing.T) {
	h := bench(t, byName)
	step := h.create(texts("name", "n", "size", "2", "do", "fail-before: "+text500))
	failed, err := h.step(step, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.world, "n"), []byte(`{"name": "n", "do": "`+strings.ReplaceAll(
		"fail-before: "+text500, `"`, `\"`)+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for waits, outcome := range map[bool]engine.Outcome{true: engine.OutcomeDone, false: engine.OutcomePartial} {
		step.Await = waits
		found, err := h.settleAfter(step, failed.Evidence)
		if err != nil || found.Outcome != outcome || len(found.InitErrors) != 1 || waits != (found.Awaited != nil) {
			t.Errorf("%t: %+v %v", waits, found, err)
		}
	}
}

// TestWhatAnotherOwnerHasMadeMeanwhileIsNotTakenOver has a create be refused because its name is taken, although
// nothing had it a moment before: if it is as declared, the provider has sent its call twice, and else another user was
// faster.
func TestWhatAnotherOwnerHasMadeMeanwhileIsNotTakenOver(t *testing.T) {
	const refused = "fail-before: n already exists"
	for name, c := range map[string]struct {
		size    string
		outcome engine.Outcome
	}{"as declared": {"2", engine.OutcomeDone}, "another": {"3", engine.OutcomeAbsent}} {
		t.Run(name, func(t *testing.T) {
			h := bench(t, byName)
			step := h.create(texts("name", "n", "size", "2", "do", refused))
			failed, err := h.step(step, 1)
			if err != nil || failed.Evidence == nil || failed.Evidence.Class != engine.ErrorExists {
				t.Fatalf("%+v %v", failed, err)
			}
			text := `{"name": "n", "size": "` + c.size + `", "do": "` + refused + `"}`
			if err := os.WriteFile(filepath.Join(h.world, "n"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			step.Await = true
			found, err := h.settleAfter(step, failed.Evidence)
			if err != nil || found.Outcome != c.outcome || found.Awaited != nil {
				t.Errorf("%+v %v", found, err)
			}
		})
	}
}

func TestAReplacementIsNotTakenForWhatItReplaces(t *testing.T) {
	for name, c := range map[string]struct {
		do      string
		gone    bool // what it replaces has been deleted
		rule    string
		outcome engine.Outcome
	}{
		"not made, beside the old one":  {"fail-before: ", false, `{"list": "property:size"}`, engine.OutcomeAbsent},
		"made, beside the old one":      {"fail-after: ", false, `{"list": "property:size"}`, engine.OutcomeDone},
		"the old one has the name":      {"fail-before: ", false, `{"read": "property:name"}`, engine.OutcomeAbsent},
		"made under the name of before": {"fail-after: ", true, `{"read": "property:name"}`, engine.OutcomeDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, map[string]deployments.ConfigValue{stackkeys.Settle: {Value: `{"` + thingType + `": ` + c.rule +
				`}`}})
			old := h.thing("old", texts("name", "old", "size", "2"), nil)
			id := "new"
			if strings.Contains(c.rule, "read") {
				id = "old"
			}
			if old.PendingReplacement = c.gone; !c.gone {
				if err := os.WriteFile(filepath.Join(h.world, "old"), []byte(`{"name": "old", "size": "2"}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			step := h.create(texts("name", id, "size", "2", "do", c.do+text500))
			step.Kind, step.Old = engine.StepCreateReplacement, old
			failed, err := h.step(step, 1)
			if err != nil || failed.Evidence == nil || !failed.Evidence.Look {
				t.Fatalf("%+v %v", failed, err)
			}
			if found, err := h.settleAfter(step, failed.Evidence); err != nil || found.Outcome != c.outcome {
				t.Errorf("%+v %v", found, err)
			}
		})
	}
}

func TestAFailedDeletionIsLookedFor(t *testing.T) {
	for do, outcome := range map[string]engine.Outcome{
		"delete-fails: " + text500: engine.OutcomeDone, "delete-fails: NotFound": engine.OutcomeDone,
		"": engine.OutcomeAbsent,
	} {
		h := bench(t, nil)
		created, err := h.step(h.create(texts("name", "n", "do", do)), 1)
		if err != nil {
			t.Fatal(err)
		}
		remove := engine.Step{Op: 3, Kind: engine.StepDelete,
			Old: h.thing("n", h.values(*created.Inputs), h.values(created.Outputs))}
		evidence := &engine.Evidence{Class: engine.ErrorAmbiguous}
		if do != "" {
			failed, err := h.step(remove, 1)
			if evidence = failed.Evidence; err != nil || evidence == nil || !evidence.Look {
				t.Fatalf("%+v %v", failed, err)
			}
		}
		if found, err := h.settleAfter(remove, evidence); err != nil || found.Outcome != outcome {
			t.Errorf("%q: %+v %v", do, found, err)
		}
	}
}

func TestACallThatIsRejectedInWordsIsRepeatedForAWhile(t *testing.T) {
	for name, c := range map[string]struct{ do, config string }{
		"throttled":              {"fail-before: " + text429, `{}`},
		"throttled after all":    {"fail-after: " + text429, `{}`},
		"what it needs is young": {"fail-before: " + text500, `{"toy": [{"class": "not ready", "http": ["500"]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			h := bench(t, map[string]deployments.ConfigValue{stackkeys.Settle: byName[stackkeys.Settle],
				stackkeys.Errors: {Value: c.config}})
			step := h.create(texts("name", "n", "do", c.do))
			if _, err := h.step(step, 1); errorType(err) != deployments.ErrorNotDone {
				t.Fatal(err)
			}
			if again, err := h.step(step, 1); err != nil || again.Outcome != engine.OutcomeDone || again.ID != "n" ||
				again.Inputs == nil || len(h.effects()) != 1 {
				t.Fatalf("%+v %v, effects %v", again, err, h.effects())
			}
			late := h.create(texts("name", "late", "do", c.do))
			late.Op = 2
			late.Timeout = 1e-9 // it is over with the first answer
			if result, err := h.step(late, 1); err != nil || result.Outcome != engine.OutcomeFailed ||
				!strings.Contains(result.Error, "it was repeated for") || !result.Evidence.Look {
				t.Errorf("%+v %v", result, err)
			}
		})
	}
}

func TestAPlainErrorOfAConvergentProviderIsDefinite(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	step := h.createPart("parts:index:Blind", "no/such/directory")
	result, err := call[engine.StepFinished](h, h.acts.Step,
		deployments.StepInput{Update: h.update, Base: h.base, Step: step, Round: 1})
	if err != nil || result.Outcome != engine.OutcomeFailed || result.Evidence == nil ||
		*result.Evidence != (engine.Evidence{Class: engine.ErrorDefinite}) {
		t.Errorf("%+v, %+v %v", result, result.Evidence, err)
	}
}

func TestAnEvidenceHasNoSecret(t *testing.T) {
	h := bench(t, byName)
	inputs := texts("name", "n", "do", "fail-before: waiting for it, InvalidHush: ")
	inputs["secret"] = resource.MakeSecret(resource.NewProperty("InvalidHush"))
	result, err := h.step(h.create(inputs), 1)
	if err != nil || strings.Contains(result.Evidence.String()+result.Error, "Hush") {
		t.Errorf("%+v, %+v %v", result, result.Evidence, err)
	}
}
