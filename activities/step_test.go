package activities

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"go.temporal.io/sdk/temporal"
)

const thingType = "toy:index:Thing"

var thingURN = urn.New("dev", "test", "", thingType, "thing")

// bench returns a house with a claimed update without a program, and the toy provider.
func bench(t *testing.T, config map[string]deployments.ConfigValue) *house {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy, Config: config})
	return h
}

func (h *house) toy() *engine.Provider {
	u := urn.New("dev", "test", "", providers.MakeProviderType("toy"), "default")
	return &engine.Provider{Ref: string(u) + "::1234", Inputs: h.bag(
		resource.PropertyMap{"region": resource.NewProperty("north")})}
}

// thing returns the state of a thing with inputs and, if it exists, outputs.
func (h *house) thing(id string, inputs, outputs resource.PropertyMap) *engine.State {
	return &engine.State{
		Key: "o1", URN: thingURN, Type: thingType, Custom: true, ID: id, Provider: h.toy().Ref,
		Inputs: h.bag(inputs), Outputs: h.bag(outputs),
	}
}

func (h *house) step(s engine.Step, round int) (engine.StepFinished, error) {
	s.URN, s.Type, s.Provider, s.Seed = thingURN, thingType, h.toy(), seedOf(thingURN)
	return call[engine.StepFinished](h, h.acts.Step, deployments.StepInput{Update: h.update, Base: h.base, Step: s,
		Round: round})
}

func (h *house) settleStep(s engine.Step) (engine.StepFinished, error) {
	s.URN, s.Type, s.Provider, s.Seed = thingURN, thingType, h.toy(), seedOf(thingURN)
	return call[engine.StepFinished](h, h.acts.Settle, deployments.SettleInput{
		Update: h.update, Base: h.base, Round: 1, Settle: engine.Settle{Step: s},
	})
}

func texts(pairs ...string) resource.PropertyMap {
	m := resource.PropertyMap{}
	for i := 0; i < len(pairs); i += 2 {
		m[resource.PropertyKey(pairs[i])] = resource.NewProperty(pairs[i+1])
	}
	return m
}

func (h *house) create(inputs resource.PropertyMap) engine.Step {
	return engine.Step{Op: 1, Kind: engine.StepCreate, New: h.thing("", inputs, nil), Check: true}
}

func TestWhatAProviderAnswersIsTheEndOfAStep(t *testing.T) {
	for name, c := range map[string]struct {
		do      string
		outcome engine.Outcome
		failure string
	}{
		"an answer is done":                                    {"", engine.OutcomeDone, ""},
		"a refusal is failed":                                  {"refuse", engine.OutcomeFailed, ""},
		"a failed initialisation exists":                       {"half", engine.OutcomePartial, ""},
		"a provider that is busy is asked again later":         {"busy", "", deployments.ErrorThrottled},
		"a provider that dies before its effect is unknown":    {"die-before", "", deployments.ErrorUnknownOutcome},
		"a provider that dies after its effect is unknown too": {"die-after", "", deployments.ErrorUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			h := bench(t, nil)
			result, err := h.step(h.create(texts("name", "n", "do", c.do)), 1)
			if result.Outcome != c.outcome || errorType(err) != c.failure {
				t.Fatalf("%+v %v", result, err)
			}
			var application *temporal.ApplicationError
			if errors.As(err, &application) {
				unknown := c.failure == deployments.ErrorUnknownOutcome
				if application.NonRetryable() != unknown || !unknown && application.NextRetryDelay() != 7*time.Second {
					t.Errorf("retryable %v after %v", !application.NonRetryable(), application.NextRetryDelay())
				}
				return
			}
			if result.Outcome != engine.OutcomeFailed && (result.ID != "n" || result.At == "" || result.Inputs == nil) {
				t.Errorf("%+v", result)
			}
			if result.Outcome == engine.OutcomePartial && !slices.Equal(result.InitErrors, []string{"not ready"}) {
				t.Errorf("%v", result.InitErrors)
			}
		})
	}
}

func TestFailedChecksAreResultsAndNothingIsSent(t *testing.T) {
	h := bench(t, nil)
	result, err := h.step(h.create(resource.PropertyMap{"size": resource.NewProperty(-1.0)}), 1)
	if err != nil || result.Outcome != engine.OutcomeFailed || len(result.Failures) != 1 ||
		result.Failures[0].Property != "size" {
		t.Fatalf("%+v %v", result, err)
	}
	if len(h.effects()) != 0 {
		t.Errorf("%v", h.effects())
	}
}

func TestLargeOutputsDoNotTravel(t *testing.T) {
	h := bench(t, nil)
	result, err := h.step(h.create(texts("name", "n", "note", strings.Repeat("long ", 5000))), 1)
	if err != nil || !strings.HasPrefix(string(result.Outputs.Ref), "blob:") || len(result.Outputs.Inline) > 0 {
		t.Fatalf("%+v %v", result.Outputs, err)
	}
	if got := h.values(result.Outputs)["note"].StringValue(); len(got) != 25000 {
		t.Errorf("%d bytes came back", len(got))
	}
}

func TestAnAttemptThatCannotReportLeavesItsOutcomeForSettling(t *testing.T) {
	t.Parallel()
	h := bench(t, nil)
	step := h.create(texts("name", "n", "do", "hang"))
	done := make(chan engine.StepFinished, 1)
	go func() {
		result, err := h.step(step, 1)
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	h.awaitHang()
	h.heart.answer(errors.New("no connection"))
	waittest.Until(t, "a heartbeat fails", func() bool {
		h.heart.mu.Lock()
		defer h.heart.mu.Unlock()
		return h.heart.beats > 0
	})
	if err := h.endHang(); err != nil { // lets the call answer
		t.Fatal(err)
	}
	result := <-done
	left, err := h.settleStep(step)
	if err != nil || left.Outcome != engine.OutcomeDone || left.ID != result.ID || left.ID == "" {
		t.Fatalf("left %+v, was %+v: %v", left, result, err)
	}
}

// awaitHang waits until the provider is in a call that hangs.
func (h *house) awaitHang() {
	h.t.Helper()
	h.awaitFile(".hangs")
}

// awaitFile waits for a file in the world.
func (h *house) awaitFile(name string) {
	h.t.Helper()
	waittest.Until(h.t, name+" is in the world", func() bool {
		_, err := os.Stat(filepath.Join(h.world, name))
		return err == nil
	})
}

func TestALostCreateIsSettledByTheRuleOfItsType(t *testing.T) {
	byName := map[string]deployments.ConfigValue{
		stackkeys.Settle: {Value: `{"` + thingType + `": {"read": "property:name"}}`},
	}
	for name, c := range map[string]struct {
		config  map[string]deployments.ConfigValue
		inputs  resource.PropertyMap
		outcome engine.Outcome
	}{
		"no rule: nobody can tell":              {nil, texts("do", "die-after"), engine.OutcomeUndecidable},
		"our name and it is there: adopted":     {byName, texts("do", "die-after"), engine.OutcomeDone},
		"our name and it is not there: absent":  {byName, texts("do", "die-before"), engine.OutcomeAbsent},
		"a given name and it was absent before": {byName, texts("name", "n", "do", "die-after"), engine.OutcomeDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, c.config)
			step := h.create(c.inputs)
			if _, err := h.step(step, 1); errorType(err) != deployments.ErrorUnknownOutcome {
				t.Fatalf("%v", err)
			}
			result, err := h.settleStep(step)
			if err != nil || result.Outcome != c.outcome {
				t.Fatalf("%+v %v", result, err)
			}
			if c.outcome == engine.OutcomeDone && (result.ID == "" || result.Inputs == nil || result.Outputs.Empty()) {
				t.Errorf("%+v", result)
			}
			if c.outcome == engine.OutcomeAbsent {
				if again, err := h.step(step, 2); err != nil || again.Outcome != engine.OutcomeDone {
					t.Errorf("again: %+v %v", again, err)
				}
			}
			if c.outcome == engine.OutcomeUndecidable && !strings.Contains(result.Error, "deployctl:settle") {
				t.Errorf("it does not say why: %q", result.Error)
			}
			if n := len(h.effects()); n != 1 && c.outcome != engine.OutcomeUndecidable {
				t.Errorf("%d effects", n)
			}
		})
	}
}

func TestAThingOfAnothersThatHasTheNameIsNotAdopted(t *testing.T) {
	h := bench(t, map[string]deployments.ConfigValue{stackkeys.Settle: {Value: `{"` + thingType +
		`": {"read": "property:name"}}`}})
	if err := os.WriteFile(filepath.Join(h.world, "n"), []byte(`{"name": "n"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	step := h.create(texts("name", "n", "do", "die-before"))
	if _, err := h.step(step, 1); errorType(err) != deployments.ErrorUnknownOutcome {
		t.Fatal(err)
	}
	if result, err := h.settleStep(step); err != nil || result.Outcome != engine.OutcomeUndecidable ||
		!strings.Contains(result.Error, "another owner") {
		t.Fatalf("%+v %v", result, err)
	}
}

func TestLostUpdatesAndDeletesAreSettledByReading(t *testing.T) {
	h := bench(t, nil)
	created, err := h.step(h.create(texts("name", "n")), 1)
	if err != nil {
		t.Fatal(err)
	}
	old := h.thing("n", h.values(*created.Inputs), h.values(created.Outputs))
	update := engine.Step{Op: 2, Kind: engine.StepUpdate, Old: old,
		New: h.thing("n", texts("name", "n", "do", "die-after"), nil)}
	if _, err := h.step(update, 1); errorType(err) != deployments.ErrorUnknownOutcome {
		t.Fatal(err)
	}
	if result, err := h.settleStep(update); err != nil || result.Outcome != engine.OutcomeDone {
		t.Errorf("a finished update: %+v %v", result, err)
	}
	update.New = h.thing("n", texts("name", "n", "size", "9"), nil)
	if result, err := h.settleStep(update); err != nil || result.Outcome != engine.OutcomeAbsent {
		t.Errorf("an update that did not happen: %+v %v", result, err)
	}
	remove := engine.Step{Op: 3, Kind: engine.StepDelete, Old: old}
	if result, err := h.settleStep(remove); err != nil || result.Outcome != engine.OutcomeAbsent {
		t.Errorf("a delete that did not happen: %+v %v", result, err)
	}
	if result, err := h.step(remove, 1); err != nil || result.Outcome != engine.OutcomeDone {
		t.Errorf("the delete: %+v %v", result, err)
	}
	if result, err := h.settleStep(remove); err != nil || result.Outcome != engine.OutcomeDone {
		t.Errorf("a delete that happened: %+v %v", result, err)
	}
}

func TestARefreshTellsWhatHasHappened(t *testing.T) {
	h := bench(t, nil)
	created, err := h.step(h.create(texts("name", "n", "size", "1")), 1)
	if err != nil {
		t.Fatal(err)
	}
	old := h.thing("n", h.values(*created.Inputs), h.values(created.Outputs))
	refresh := engine.Step{Op: 2, Kind: engine.StepRefresh, Old: old}
	if result, err := h.step(refresh, 1); err != nil || result.Diff.Change != engine.ChangeNone || result.ID != "n" {
		t.Errorf("untouched: %+v %v", result, err)
	}
	file := filepath.Join(h.world, "n")
	if err := os.WriteFile(file, []byte(`{"name": "n", "size": "2", "region": "north"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	result, err := h.step(refresh, 1)
	if err != nil || result.Diff.Change != engine.ChangeUpdate || h.values(
		*result.Inputs)["size"].StringValue() != "2" {
		t.Errorf("changed: %+v %v", result, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if result, err := h.step(refresh, 1); err != nil || result.ID != "" || result.Outcome != engine.OutcomeDone {
		t.Errorf("gone: %+v %v", result, err)
	}
}

func TestAGroupLeavesTheRefreshesForWhichItHasNoTime(t *testing.T) {
	h := bench(t, nil)
	created, err := h.step(h.create(texts("name", "n", "size", "1")), 1)
	if err != nil {
		t.Fatal(err)
	}
	refresh := engine.Step{
		Kind: engine.StepRefresh, URN: thingURN, Type: thingType, Provider: h.toy(),
		Old: h.thing("n", h.values(*created.Inputs), h.values(created.Outputs)),
	}
	in := deployments.RefreshInput{Update: h.update, Base: h.base}
	for op := range 3 {
		refresh.Op = op + 1
		in.Steps = append(in.Steps, refresh)
	}
	for limit, read := range map[time.Duration]int{0: 1, groupTime: 3} {
		h.acts.groupTime = limit
		out, err := call[deployments.RefreshOutput](h, h.acts.RefreshResources, in)
		if err != nil || len(out.Done) != read || out.Done[0].Op != 1 || len(out.NotBegun) != 3-read ||
			read == 1 && !slices.Equal(out.NotBegun, []int{2, 3}) {
			t.Fatalf("in %s: %+v %v, want %d read", limit, out, err, read)
		}
	}
}

func TestAnImportTellsHowTheProgramDiffers(t *testing.T) {
	h := bench(t, nil)
	if err := os.WriteFile(filepath.Join(h.world, "n"), []byte(`{"name": "n", "size": "2"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	state := h.thing("", texts("name", "n", "size", "3"), nil)
	state.ImportID = "n"
	result, err := h.step(engine.Step{Op: 1, Kind: engine.StepImport, New: state}, 1)
	if err != nil || result.ID != "n" || result.Diff.Change != engine.ChangeUpdate ||
		result.Diff.ChangedKeys[0] != "size" {
		t.Errorf("%+v %v", result, err)
	}
	state.ImportID = "nobody"
	result, err = h.step(engine.Step{Op: 1, Kind: engine.StepImport, New: state}, 1)
	if err != nil || result.Outcome != engine.OutcomeFailed || !strings.Contains(result.Error, "does not exist") {
		t.Errorf("%+v %v", result, err)
	}
}

func TestAnUpdateThatIsHostedElsewhereIsNotStarted(t *testing.T) {
	h := bench(t, nil)
	step := h.create(texts("name", "n"))
	release(h)
	h.acts.Worker, h.acts.sessions.Worker = "worker-2", "worker-2"
	if _, err := h.step(step, 1); errorType(err) != deployments.ErrorNotStarted {
		t.Errorf("%v", err)
	}
	h.acts.Worker, h.acts.sessions.Worker = "worker-1", "worker-1"
	if result, err := h.step(step, 1); err != nil || result.Outcome != engine.OutcomeDone {
		t.Errorf("a session is made again: %+v %v", result, err)
	}
}

func TestACancelReachesTheProviderAndItsAnswerIsKept(t *testing.T) {
	t.Parallel()
	h := bench(t, nil)
	h.heart.answer(temporal.NewCanceledError())
	result, err := h.step(h.create(texts("name", "n", "do", "hang")), 1)
	if err != nil || result.Outcome != engine.OutcomeDone || result.ID != "n" {
		t.Errorf("%+v %v", result, err)
	}
}

func TestNothingIsSentTwiceInOneRound(t *testing.T) {
	t.Parallel()
	h := bench(t, nil)
	step := h.create(texts("name", "n", "do", "hang"))
	sent := make(chan engine.StepFinished, 1)
	go func() {
		result, err := h.step(step, 1)
		if err != nil {
			t.Error(err)
		}
		sent <- result
	}()
	h.awaitHang()
	// The server regards the first attempt as ended, so it starts another.
	if _, err := h.step(step, 1); errorType(err) != deployments.ErrorUnknownOutcome || len(h.effects()) != 1 {
		t.Errorf("the second attempt: %v, %v", err, h.effects())
	}
	if err := h.endHang(); err != nil { // lets the call answer
		t.Fatal(err)
	}
	if result := <-sent; result.Outcome != engine.OutcomeDone || result.ID != "n" {
		t.Errorf("the first attempt: %+v", result)
	}
	if _, err := h.step(step, 1); errorType(err) != deployments.ErrorUnknownOutcome || len(h.effects()) != 1 {
		t.Errorf("an attempt after the answer: %v, %v", err, h.effects())
	}
}

func TestAWorkerThatIsAskedToStopFinishesWhatWasSentAndSendsNothing(t *testing.T) {
	t.Parallel()
	h := bench(t, nil)
	h.stop = make(chan struct{})
	sent := make(chan engine.StepFinished, 1)
	go func() {
		result, err := h.step(h.create(texts("name", "n", "do", "hang")), 1)
		if err != nil {
			t.Error(err)
		}
		sent <- result
	}()
	h.awaitHang()
	close(h.stop)
	if _, err := h.step(h.create(texts("name", "m")), 1); errorType(err) != deployments.ErrorPostponed ||
		len(h.effects()) != 1 {
		t.Errorf("a step that had not begun: %v, %v", err, h.effects())
	}
	if err := h.endHang(); err != nil { // lets the call answer
		t.Fatal(err)
	}
	if result := <-sent; result.Outcome != engine.OutcomeDone || result.ID != "n" {
		t.Errorf("the step that was sent: %+v", result)
	}
}

func TestFewStepsAreIssuedOneByOne(t *testing.T) {
	for parallel, want := range map[int][2]int{1: {0, 0}, 4: {0, 0}, 5: {2, 505}, 16: {8, 488}, 500: {250, 500}} {
		if steps, refreshes := ahead(parallel); [2]int{steps, refreshes} != want {
			t.Errorf("%d at a time: %d steps and %d refreshes ahead, want %v", parallel, steps, refreshes, want)
		}
	}
}

func TestTheProgramGetsTheAnswerOfAStepThatIsDone(t *testing.T) {
	for name, c := range map[string]struct {
		do       string
		epoch    int
		answered bool
	}{
		"a step that is done answers the program":         {"", 1, true},
		"an answer to an earlier start is nobody's":       {"", 0, false},
		"a step that failed leaves the answer to the Run": {"refuse", 1, false},
		"a step that is partly done leaves it to the Run": {"half", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.claim(deployments.UpdateRequest{Bundle: h.upload(scenarioProject("steps: []"))})
			s, err := h.acts.sessions.Hosted(t.Context(), h.update, h.base)
			if err != nil {
				t.Fatal(err)
			}
			link := runlink.New(silentRuns{}, h.update, 1)
			served, err := s.ServeMonitor(t.Context(), link, engine.Goal{Organization: testStack.Organization,
				Project: testStack.Project, Stack: testStack.Stack}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer served.Stop()
			asking := make(chan engine.Reply, 1)
			asked := make(chan struct{})
			go func() {
				r, _ := link.Call(t.Context(), func(int, int) deployments.Message {
					defer close(asked)
					return deployments.Message{}
				})
				asking <- r
			}()
			<-asked
			step := h.create(texts("name", "n", "do", c.do))
			step.Answer = &engine.Reply{Epoch: c.epoch, Seq: 1, URN: thingURN, Stables: []string{"name"},
				Result: engine.ResultSuccess}
			result, err := h.step(step, 1)
			if err != nil || result.Answered != c.answered {
				t.Fatalf("%+v %v", result, err)
			}
			if !c.answered {
				return
			}
			if r := <-asking; r.ID != "n" || !r.Object.Same(result.Outputs) || r.URN != thingURN ||
				!slices.Equal(r.Stables, step.Answer.Stables) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// silentRuns accepts every signal and never replies.
type silentRuns struct{ runlink.Runs }

func (silentRuns) Signal(context.Context, deployments.UpdateName, deployments.Messages) error {
	return nil
}
