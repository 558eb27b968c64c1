package activities

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"go.temporal.io/sdk/temporal"
)

func TestALostRunOfACommandIsSettledByItsReadCommand(t *testing.T) {
	const runType = "deployctl:command:Run"
	u := urn.New("dev", "test", "", runType, "run")
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	made := filepath.Join(h.world, "made")
	step := func(inputs resource.PropertyMap) engine.Step {
		ref := string(urn.New("dev", "test", "", providers.MakeProviderType("deployctl"), "default")) + "::1234"
		return engine.Step{
			Op: 5, Kind: engine.StepCreate, URN: u, Type: runType, Check: true, Seed: seedOf(u),
			Provider: &engine.Provider{Ref: ref},
			New: &engine.State{Key: "o5", URN: u, Type: runType, Custom: true, Provider: ref,
				Inputs: h.bag(inputs)},
		}
	}
	settle := func(s engine.Step) engine.StepFinished {
		t.Helper()
		result, err := call[engine.StepFinished](h, h.acts.Settle,
			deployments.SettleInput{Update: h.update, Base: h.base, Settle: engine.Settle{Step: s}})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	create := "echo secret > " + made
	readable := step(resource.PropertyMap{
		"create": resource.MakeSecret(resource.NewProperty(create)), "read": resource.NewProperty("cat " + made),
	})
	if got := settle(readable); got.Outcome != engine.OutcomeAbsent {
		t.Errorf("before it was run: %+v", got)
	}
	if done, err := call[engine.StepFinished](h, h.acts.Step, deployments.StepInput{
		Update: h.update, Base: h.base, Step: readable, Round: 1,
	}); err != nil || done.Outcome != engine.OutcomeDone {
		t.Fatalf("%+v %v", done, err)
	}
	got := settle(readable)
	if got.Outcome != engine.OutcomeDone || got.ID == "" || got.Inputs == nil {
		t.Fatalf("after it was run: %+v", got)
	}
	if out := h.values(got.Outputs)["stdout"]; !out.IsSecret() || out.SecretValue().Element.StringValue() != "secret" {
		t.Errorf("its output is %v", out)
	}
	if got := settle(step(texts("create", create))); got.Outcome != engine.OutcomeUndecidable {
		t.Errorf("without a read command: %+v", got)
	}
}

// parts are types whose resources are files in a directory.
func parts(dir string) provider.Module {
	return provider.Module{Resources: []provider.Resource{
		provider.NewResource[partIn, partIn]("parts:index:Blind", part{dir}),
		provider.NewResource[partIn, partIn]("parts:index:Visible", visiblePart{part{dir}}),
		provider.NewResource[partIn, partIn]("parts:index:Silent", silentPart{part{dir}}),
		provider.NewResource[partIn, slowOut]("parts:index:Slow", slowPart{part{dir}}),
	}}
}

// part is a convergent type: a file with the part's name.
type part struct{ dir string }

type partIn struct {
	Name string `pulumi:"name"`
}

func (p part) Reconcile(_ context.Context, r provider.Request[partIn, partIn]) (string, partIn, error) {
	if err := os.WriteFile(filepath.Join(p.dir, r.News.Name), []byte(r.Owner()), 0o600); err != nil {
		return "", r.News, err
	}
	return r.News.Name, r.News, nil
}

func (p part) Delete(_ context.Context, e provider.Existing[partIn, partIn]) error {
	return os.Remove(filepath.Join(p.dir, e.ID))
}

// visiblePart is a part with a look-up.
type visiblePart struct{ part }

func (p visiblePart) Read(
	_ context.Context, l provider.Lookup[partIn, partIn],
) (provider.Found[partIn, partIn], error) {
	owner, err := os.ReadFile(filepath.Join(p.dir, l.Inputs.Name))
	f := provider.Found[partIn, partIn]{Ownership: provider.Unowned, ID: l.Inputs.Name, Inputs: *l.Inputs,
		Output: *l.Inputs}
	switch {
	case os.IsNotExist(err):
		f.Ownership = provider.Absent
	case string(owner) == l.Owner():
		f.Ownership = provider.Owned
	}
	return f, nil
}

// createPart is the create of a part.
func (h *house) createPart(kind tokens.Type, name string) engine.Step {
	u := urn.New("dev", "test", "", kind, name)
	ref := string(urn.New("dev", "test", "", providers.MakeProviderType("parts"), "default")) + "::1234"
	return engine.Step{
		Op: 5, Kind: engine.StepCreate, URN: u, Type: kind, Check: true, Seed: seedOf(u),
		Provider: &engine.Provider{Ref: ref},
		New: &engine.State{Key: "o5", URN: u, Type: kind, Custom: true, Provider: ref,
			Inputs: h.bag(texts("name", name))},
	}
}

func TestALostConvergentCreateThatIsNotMadeAgainIsLookedFor(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	put := func(name, owner string) {
		if err := os.WriteFile(filepath.Join(h.world, name), []byte(owner), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	identity, err := h.store.Identities.Of(t.Context(), testStack)
	if err != nil {
		t.Fatal(err)
	}
	ours := h.createPart("parts:index:Visible", "ours")
	put("ours", provider.Identity{URN: ours.URN, StackID: identity.Owner}.Owner())
	put("theirs", "somebody")
	for _, c := range []struct {
		step  engine.Step
		again bool
		want  engine.Outcome
	}{
		{ours, true, engine.OutcomeAbsent},
		{ours, false, engine.OutcomeDone},
		{h.createPart("parts:index:Visible", "nobody"), false, engine.OutcomeAbsent},
		{h.createPart("parts:index:Visible", "theirs"), false, engine.OutcomeAbsent},
		{h.createPart("parts:index:Blind", "ours"), false, engine.OutcomeUndecidable},
	} {
		got, err := call[engine.StepFinished](h, h.acts.Settle, deployments.SettleInput{
			Update: h.update, Base: h.base, Settle: engine.Settle{Step: c.step, Again: c.again},
		})
		if err != nil || got.Outcome != c.want || (got.Outcome == engine.OutcomeDone) != (len(got.InitErrors) == 1) {
			t.Errorf("%s, made again: %v: %+v %v", c.step.URN, c.again, got, err)
		}
	}
}

func TestPluginsAreToldWhichStackTheyWorkForWhateverItIsCalled(t *testing.T) {
	h := newHouse(t)
	head, err := h.store.Head(t.Context(), testStack)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := h.store.Identities.Of(t.Context(), testStack)
	if err != nil {
		t.Fatal(err)
	}
	for name, preview := range map[string]bool{"an update": false, "a preview": true} {
		t.Run(name, func(t *testing.T) {
			claimed := h.claim(deployments.UpdateRequest{
				Kind: engine.KindRefresh, DryRun: preview, Environment: []string{provider.StackVariable + "=another"},
			})
			if claimed.Goal.StackID != head.ID {
				t.Errorf("the core is told %q; the stack's id is %s", claimed.Goal.StackID, head.ID)
			}
			s, err := h.acts.sessions.Hosted(t.Context(), h.update, h.base)
			if err != nil {
				t.Fatal(err)
			}
			const reference = "urn:pulumi:dev::test::pulumi:providers:deployctl::default::id"
			if _, err := s.Update().Providers.Configured(t.Context(), reference, nil, engine.Bag{}); err != nil {
				t.Fatal(err)
			}
			told := filepath.Join(h.world, stackFile)
			if id, err := os.ReadFile(told); err != nil || len(id) == 0 || string(id) != identity.Owner {
				t.Errorf("it is told %q, not %s (%v)", id, identity.Owner, err)
			}
			if err := os.Remove(told); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestNoUpdateStartsFromAStateThatIsKnownToBeBroken(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindRefresh})
	u := urn.New("dev", "test", "", "my:index:Part", "part")
	twice := []engine.Delta{
		{Seq: 1, Kind: engine.DeltaPut, Op: 1, State: &engine.State{Key: "o1", URN: u, Type: "my:index:Part"}},
		{Seq: 2, Kind: engine.DeltaPut, Op: 2, State: &engine.State{Key: "o2", URN: u, Type: "my:index:Part"}},
	}
	if _, err := call[struct{}](h, h.acts.Save, deployments.SaveInput{Update: h.update, Base: h.base, Number: 1,
		Deltas: twice}); err != nil {
		t.Fatal(err)
	}
	if _, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, deployments.CommitInput{
		Update: h.update, Base: h.base, Saves: 1, Result: engine.Result{Status: engine.StatusSucceeded},
	}); err != nil {
		t.Fatal(err)
	}
	release(h)
	h.claim(deployments.UpdateRequest{Kind: engine.KindRefresh})
	_, err := call[deployments.Headers](h, h.acts.ReadHeaders, deployments.HeadersInput{Update: h.update, Base: h.base})
	if errorType(err) != string(deployments.CodeFormat) || !strings.Contains(err.Error(), "stack import") {
		t.Errorf("%v", err)
	}
}

func TestALostCreateIsFoundAmongAllByWhatTellsItFromOthers(t *testing.T) {
	tagged := func(name string) string { return `{"name": "n", "tags": {"Name": "` + name + `"}}` }
	for name, c := range map[string]struct {
		do            string
		before, after map[string]string // other things in the world, before and after the create
		outcome       engine.Outcome
	}{
		"it is there, and was not before": {"die-after", map[string]string{"a": tagged("other"), "z": "{}"}, nil,
			engine.OutcomeDone},
		"it is not there": {"die-before", map[string]string{"a": tagged("other")}, nil,
			engine.OutcomeAbsent},
		"there was one before, maybe another's": {"die-before", map[string]string{"a": tagged("ours")}, nil,
			engine.OutcomeUndecidable},
		"there are two": {"die-after", nil, map[string]string{"a": tagged("ours")},
			engine.OutcomeUndecidable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, map[string]deployments.ConfigValue{stackkeys.Settle: {Value: `{"` + thingType +
				`": {"list": "property:tags.Name"}}`}})
			put := func(things map[string]string) {
				for id, text := range things {
					if err := os.WriteFile(filepath.Join(h.world, id), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			put(c.before)
			inputs := texts("do", c.do)
			inputs["tags"] = resource.NewProperty(resource.PropertyMap{"Name": resource.NewProperty("ours")})
			step := h.create(inputs)
			if _, err := h.step(step, 1); errorType(err) != deployments.ErrorUnknownOutcome {
				t.Fatalf("%v", err)
			}
			put(c.after)
			result, err := h.settleStep(step)
			if err != nil || result.Outcome != c.outcome {
				t.Fatalf("%+v %v", result, err)
			}
			if c.outcome == engine.OutcomeDone && (result.ID == "" || result.ID == "a" || result.Inputs == nil) {
				t.Errorf("%+v", result)
			}
		})
	}
}

// The first attempt was lost before it looked for the resource.
func TestARepeatedAttemptLooksToo(t *testing.T) {
	h := bench(t, map[string]deployments.ConfigValue{stackkeys.Settle: {Value: `{"` + thingType +
		`": {"read": "property:name"}}`}})
	step := h.create(texts("name", "ours", "do", "die-after"))
	step.Check = false // the program sets the name
	if _, err := h.step(step, 2); errorType(err) != deployments.ErrorUnknownOutcome {
		t.Fatalf("%v", err)
	}
	if result, err := h.settleStep(step); err != nil || result.Outcome != engine.OutcomeDone {
		t.Errorf("%+v %v", result, err)
	}
}

func TestAProviderThatStopsInTheMiddleOfAListIsAskedAgain(t *testing.T) {
	t.Parallel()
	h := bench(t, map[string]deployments.ConfigValue{stackkeys.Settle: {Value: `{"` + thingType +
		`": {"list": "property:tags.Name"}}`}})
	inputs := texts("do", "die-after")
	inputs["tags"] = resource.NewProperty(resource.PropertyMap{"Name": resource.NewProperty("ours")})
	step := h.create(inputs)
	if _, err := h.step(step, 1); errorType(err) != deployments.ErrorUnknownOutcome {
		t.Fatalf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(h.world, stopListing), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.settleStep(step); errorType(err) != deployments.ErrorNotDone {
		t.Errorf("when it stops: %v", err)
	}
	if result, err := h.settleStep(step); err != nil || result.Outcome != engine.OutcomeDone {
		t.Errorf("after that: %+v %v", result, err)
	}
}

// timed is the context of an activity that reaches its deadline when the test says so.
type timed struct {
	context.Context
	until time.Time
	over  chan struct{}
}

func (c timed) Deadline() (time.Time, bool) { return c.until, true }

func (c timed) Done() <-chan struct{} { return c.over }

func (c timed) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// overrun starts a create whose call is not answered by the step's deadline.
func (h *house) overrun(until time.Time) engine.Step {
	h.t.Helper()
	ctx := timed{h.t.Context(), until, make(chan struct{})}
	h.background = ctx
	defer func() { h.background = nil }()
	step, lost := h.create(texts("name", "n", "do", "hang")), make(chan error, 1)
	go func() {
		_, err := h.step(step, 1)
		lost <- err
	}()
	h.awaitHang()
	close(ctx.over)
	if err := <-lost; !temporal.IsTimeoutError(err) {
		h.t.Fatalf("without an answer it ends with %v", err)
	}
	return step
}

func TestACallThatOverrunsItsStepIsSettledByItsLateAnswer(t *testing.T) {
	for name, answer := range map[string]func(*house){
		"it is answered": func(h *house) {
			if err := h.endHang(); err != nil { // lets the call answer
				h.t.Error(err)
			}
		},
		"the update is cancelled by force": func(h *house) { h.heart.answer(temporal.NewCanceledError()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, nil)
			step := h.overrun(time.Now().Add(time.Hour))
			var answering sync.WaitGroup
			defer answering.Wait() // its own context ends with the test
			answering.Go(func() { answer(h) })
			result, err := h.settleStep(step)
			if err != nil || result.Outcome != engine.OutcomeDone || result.ID != "n" || result.Inputs == nil ||
				result.Op != step.Op {
				t.Errorf("%+v %v", result, err)
			}
		})
	}
}

func TestACallThatIsNeverAnsweredIsNotTakenForAbsent(t *testing.T) {
	h := bench(t, map[string]deployments.ConfigValue{stackkeys.Settle: {Value: `{"` + thingType +
		`": {"read": "property:name"}}`}})
	step := h.overrun(time.Now().Add(-time.Minute))
	if err := os.Remove(filepath.Join(h.world, "n")); err != nil { // its effect is still to come
		t.Fatal(err)
	}
	result, err := h.settleStep(step)
	if err != nil || result.Outcome != engine.OutcomeUndecidable ||
		result.Error != "its call was not answered in its time, and may still have its effect" {
		t.Errorf("%+v %v", result, err)
	}
}

// silentPart is a part whose Read makes a file, which says that it was called, and does not answer.
type silentPart struct{ part }

// askedFile is the file.
const askedFile = ".asked"

func (p silentPart) Read(
	ctx context.Context, _ provider.Lookup[partIn, partIn],
) (provider.Found[partIn, partIn], error) {
	if err := os.WriteFile(filepath.Join(p.dir, askedFile), nil, 0o600); err != nil {
		return provider.Found[partIn, partIn]{}, err
	}
	<-ctx.Done()
	return provider.Found[partIn, partIn]{}, ctx.Err()
}

func TestAForcedCancelEndsALookThatIsNotAnswered(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	ended := make(chan error, 1)
	go func() {
		_, err := call[engine.StepFinished](h, h.acts.Settle, deployments.SettleInput{Update: h.update, Base: h.base,
			Settle: engine.Settle{Step: h.createPart("parts:index:Silent", "mute")}})
		ended <- err
	}()
	waittest.Until(t, "the provider is asked", func() bool {
		_, err := os.Stat(filepath.Join(h.world, askedFile))
		return err == nil
	})
	h.heart.answer(temporal.NewCanceledError())
	if err := waittest.For(t, "the look ends", ended); !temporal.IsCanceledError(err) {
		t.Errorf("it ends with %v", err)
	}
}
