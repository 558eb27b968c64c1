package activities

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// next begins another update of the stack with a configuration.
func (h *house) next(config map[string]deployments.ConfigValue) {
	h.t.Helper()
	if _, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, deployments.CommitInput{
		Update: h.update, Base: h.base, Result: engine.Result{Status: engine.StatusFailed},
	}); err != nil {
		h.t.Fatal(err)
	}
	release(h)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy, Config: config})
}

// lose makes a create whose answer is lost.
func (h *house) lose(step engine.Step, round int) {
	h.t.Helper()
	if _, err := h.step(step, round); errorType(err) != deployments.ErrorUnknownOutcome {
		h.t.Fatalf("%v", err)
	}
}

// put puts a thing into the world.
func (h *house) put(id string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.world, id), []byte("{}"), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func TestOnlyACreateThatHadAMarkIsSoughtByIt(t *testing.T) {
	marked, plain := marking(byMark), ruled(byMark)
	elsewhere := marking(strings.ReplaceAll(byMark, "deployctl-mark", "other-mark"))
	prod := urn.New("prod", "test", "", thingType, "thing")
	for name, c := range map[string]struct {
		before, after map[string]deployments.ConfigValue
		urn           urn.URN
		outcome       engine.Outcome
	}{
		"marks are asked for since":        {plain, marked, thingURN, engine.OutcomeUndecidable},
		"marks are not asked for any more": {marked, plain, thingURN, engine.OutcomeDone},
		"the stack was renamed since":      {marked, marked, prod, engine.OutcomeDone},
		"the mark has another place since": {marked, elsewhere, thingURN, engine.OutcomeUndecidable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, c.before)
			step := h.create(texts("do", "die-after", "serverMade", "yes"))
			h.lose(step, 1)
			h.next(c.after)
			step.URN, step.Type, step.Provider, step.Seed = c.urn, thingType, h.toy(), seedOf(thingURN)
			result, err := call[engine.StepFinished](h, h.acts.Settle, deployments.SettleInput{
				Update: h.update, Base: h.base, Settle: engine.Settle{Step: step},
			})
			if err != nil || result.Outcome != c.outcome {
				t.Errorf("%+v %v", result, err)
			}
		})
	}
}

// A create without a mark takes the place of one with a mark, so that its resource is not sought by that.
func TestACreateWithoutAMarkIsNotSoughtByTheMarkOfAnEarlierOne(t *testing.T) {
	h := bench(t, marking(byMark))
	h.lose(h.create(texts("do", "die-before", "serverMade", "yes")), 1)
	step := h.create(texts("do", "die-after", "serverMade", "yes", "labels", "none"))
	h.lose(step, 1)
	if result, err := h.settleStep(step); err != nil || result.Outcome != engine.OutcomeUndecidable {
		t.Errorf("%+v %v", result, err)
	}
}

func TestARepeatedCreateTakesOverWhatAnEarlierUpdateMadeWithItsMark(t *testing.T) {
	h := bench(t, marking(byMark))
	h.lose(h.create(texts("do", "die-after", "serverMade", "yes")), 1)
	h.next(marking(byMark))
	result, err := h.step(h.create(texts("do", "", "serverMade", "yes")), 1)
	if made := h.effects(); err != nil || result.Outcome != engine.OutcomePartial || len(made) != 1 {
		t.Errorf("%+v %v, after %q", result, err, made)
	}
}

func TestARepeatedCreateTakesOverOnlyWhatItsRuleAcceptsAsAProof(t *testing.T) {
	const rule = `{"read": "${name}", "proof": ["mark"]}`
	var rules settlerule.Rules
	if err := rules.UnmarshalJSON([]byte(rule)); err != nil {
		t.Fatal(err)
	}
	h := bench(t, ruled(rule))
	sought := (&lookup.Finder{Rule: &rules[0], ID: "n"}).Digest()
	if err := h.store.Creates.NoteAbsence(t.Context(), testStack, seedOf(thingURN), sought, 1); err != nil {
		t.Fatal(err)
	}
	h.put("n")
	result, err := h.step(h.create(texts("name", "n")), 2)
	if err != nil || result.Outcome != engine.OutcomeFailed {
		t.Errorf("%+v %v", result, err)
	}
}

// TestWhatAnotherOwnerMakesBeforeACallIsSentIsNotTakenOver has a worker stop after it has noted that a thing is not
// there, and before it has it created.
func TestWhatAnotherOwnerMakesBeforeACallIsSentIsNotTakenOver(t *testing.T) {
	h := bench(t, byName)
	step := h.create(texts("name", "n"))
	Depart(t.Context(), h.acts)
	for attempt := range 2 {
		if result, err := h.step(step, 1); errorType(err) != deployments.ErrorPostponed {
			t.Errorf("attempt %d: %+v %v", attempt+1, result, err)
		}
		h.put("n")
	}
}

func TestThatOneThingWasAbsentIsNoProofOfAnother(t *testing.T) {
	for after, outcome := range map[string]engine.Outcome{
		`{"read": "x-${name}"}`: engine.OutcomeAbsent,
		`{"read": "${name}"}`:   engine.OutcomeUndecidable,
	} {
		h := bench(t, ruled(`{"read": "x-${name}"}`))
		h.put("n")
		step := h.create(texts("name", "n", "do", "die-before"))
		h.lose(step, 1)
		h.next(ruled(after))
		if result, err := h.settleStep(step); err != nil || result.Outcome != outcome {
			t.Errorf("%s: %+v %v", after, result, err)
		}
	}
}

func TestAProviderThatIsAwayWhileASeedIsTriedIsAskedAgain(t *testing.T) {
	h := bench(t, ruled(`{"read": "${name}"}`))
	if err := os.WriteFile(filepath.Join(h.world, checksLeft), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if result, err := h.step(h.create(texts("do", "")), 1); errorType(err) != deployments.ErrorNotDone {
		t.Errorf("%+v %v", result, err)
	}
}

func TestAProviderIsAskedOnceHowItsCreatesAreSettled(t *testing.T) {
	h := bench(t, nil)
	for i, name := range []string{"a", "b", "c"} {
		step := h.create(texts("name", name))
		step.Op = i + 1
		if result, err := h.step(step, 1); err != nil || result.Outcome != engine.OutcomeDone {
			t.Fatalf("%+v %v", result, err)
		}
	}
	if asked := h.noted(askedMappings); len(asked) != 1 {
		t.Errorf("%q", asked)
	}
}
