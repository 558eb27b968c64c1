package activities

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/updates"
)

// refusing is an object store that fails calls ("get" or "put") for keys that contain part, as often as left says.
type refusing struct {
	bucket.Objects
	mu   sync.Mutex
	what string // the call and a part of the key
	err  error
	left int
}

// refuse makes the next calls fail.
func (r *refusing) refuse(call, part string, code deployments.Code, times int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.what, r.err, r.left = call+" "+part, deployments.Errorf(code, "it says no"), times
}

func (r *refusing) answer(call, key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	what, part, _ := strings.Cut(r.what, " ")
	if r.left == 0 || !strings.Contains(call, what) || !strings.Contains(key, part) {
		return nil
	}
	r.left--
	return r.err
}

func (r *refusing) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	if err := r.answer("put", key); err != nil {
		return "", err
	}
	return r.Objects.Put(ctx, key, data, c)
}

func (r *refusing) Get(ctx context.Context, key string) (bucket.Object, error) {
	if err := r.answer("get", key); err != nil {
		return bucket.Object{}, err
	}
	return r.Objects.Get(ctx, key)
}

// perhaps are the codes of the store's errors that may pass.
var perhaps = []deployments.Code{
	deployments.CodeUnauthorized, deployments.CodeForbidden, deployments.CodeInternal, deployments.CodeInvalid,
	deployments.CodeUnavailable,
}

func TestEverySaveIsRepeatedWhateverTheStoreAnswers(t *testing.T) {
	objects := &refusing{Objects: &bucket.Memory{}}
	h := newHouseOn(t, objects)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	save := deployments.SaveInput{Update: h.update, Number: 1, Deltas: []engine.Delta{
		{Seq: 1, Kind: engine.DeltaEnd, Op: 1}}}
	settled := deployments.CommitInput{
		Update: h.update, Base: h.base, Saves: 1, LastSave: &save,
		Result: engine.Result{Status: engine.StatusSucceeded},
	}
	aside := deployments.SpilledPart{Update: h.update, Name: "core", Data: []byte("{}")}
	// What programs and plugins print is stored at the same time, and its loss is no error: only some keys are refused.
	for name, do := range map[string]struct {
		part string
		try  func() error
	}{
		"a save": {"/delta/", func() error { _, err := call[struct{}](h, h.acts.Save, save); return err }},
		"the last save": {"/checkpoints/", func() error {
			_, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, settled)
			return err
		}},
		"a core put aside": {"/aside/", func() error { _, err := call[struct{}](h, h.acts.SpillPart, aside); return err }},
		"a core that goes on": {"/aside/", func() error {
			_, err := call[[]byte](h, h.acts.LoadSpilledPart, aside)
			return err
		}},
	} {
		for _, code := range perhaps {
			objects.refuse("", do.part, code, 1)
			err := do.try()
			var answer *temporal.ApplicationError
			if !errors.As(err, &answer) || answer.NonRetryable() {
				t.Errorf("%s after %s: %v", name, code, err)
			}
		}
	}
	objects.refuse("", "", "", 0)
	if info, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, settled); err != nil ||
		info.Status != string(engine.StatusSucceeded) {
		t.Errorf("it came to %+v, %v", info, err)
	}
}

func TestAnEventThatCannotBeShownCostsThatEventAndNoState(t *testing.T) {
	const shown, hidden = "this is shown", "cannot be shown"
	outputs := func(h *house, outputs engine.Bag) engine.Emit {
		state := h.thing("n", texts("name", "n"), nil)
		state.Outputs = outputs
		return engine.Emit{Kind: engine.EmitOutputs, Step: engine.StepCreate, URN: state.URN, Type: state.Type, New: state}
	}
	long := func(h *house) engine.Emit { return outputs(h, h.bag(texts("note", strings.Repeat("long ", 5000)))) }
	for name, c := range map[string]struct {
		refused string
		broken  func(*house) engine.Emit
	}{
		"a value that is gone":  {"/blob/", long},
		"no values can be read": {"/1/update", long},
		"a value that is no value": {"", func(h *house) engine.Emit {
			return outputs(h, engine.Bag{Digest: "d", Inline: []byte("42")})
		}},
		"a kind that is unknown": {"", func(*house) engine.Emit { return engine.Emit{Kind: "new", URN: thingURN} }},
	} {
		t.Run(name, func(t *testing.T) {
			objects := &refusing{Objects: &bucket.Memory{}}
			h := newHouseOn(t, objects)
			h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
			save := deployments.SaveInput{Update: h.update, Base: h.base, Number: 1,
				Deltas: []engine.Delta{{Seq: 1, Kind: engine.DeltaEnd, Op: 1}},
				Events: []engine.Emit{{Kind: engine.EmitDiagnostic, Severity: "info", Message: shown}, c.broken(h)},
			}
			Close(t.Context(), h.acts) // so that nothing is cached
			if c.refused != "" {
				objects.refuse("get", c.refused, deployments.CodeNotFound, -1)
			}
			_, err := call[struct{}](h, h.acts.Save, save)
			objects.refuse("", "", "", 0)
			if err != nil {
				t.Fatal(err)
			}
			deltas, err := h.store.Updates.LoadDeltas(t.Context(), h.update, 0, 1)
			if log := h.log(); err != nil || len(deltas) != 1 || !strings.Contains(log, shown) ||
				!strings.Contains(log, hidden) {
				t.Errorf("stored %v %v, and shown %s", deltas, err, log)
			}
		})
	}
}

// brokenValues is a decoder that panics, or returns a number that JSON does not have.
type brokenValues struct{ panics bool }

func (b brokenValues) Decode(context.Context, engine.Bag) (resource.PropertyMap, error) {
	if b.panics {
		panic("hush-hush")
	}
	return resource.PropertyMap{"n": resource.NewProperty(math.NaN())}, nil
}

func TestADefectInShowingAnEventCostsThatEvent(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	emits := []engine.Emit{
		{Kind: engine.EmitOutputs, URN: thingURN, New: h.thing("n", texts("name", "n"), nil)},
		{Kind: engine.EmitDiagnostic, Severity: "info", Message: "this is shown"},
	}
	for number, values := range []brokenValues{{panics: true}, {panics: false}} {
		events := eventEncoder{values: values}.events(t.Context(), emits)
		if err := h.acts.append(t.Context(), h.update, number+1, events); err != nil {
			t.Fatal(err)
		}
	}
	if log := h.log(); strings.Count(log, "this is shown") != 2 || strings.Count(log, "cannot be shown") != 2 ||
		strings.Contains(log, "hush-hush") {
		t.Error(log)
	}
}

func TestWhatAStepMadeIsKeptUntilTheStoreTakesIt(t *testing.T) {
	for _, code := range perhaps {
		objects := &refusing{Objects: &bucket.Memory{}}
		h := newHouseOn(t, objects)
		h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
		create := h.create(texts("name", "n", "note", strings.Repeat("long ", 5000)))
		create.Check = false
		objects.refuse("put", "/blob/", code, 3)
		result, err := h.step(create, 1)
		if err != nil || result.Outcome != engine.OutcomeDone || !strings.HasPrefix(string(result.Outputs.Ref),
			"blob:") ||
			objects.left > 0 {
			t.Errorf("%s: %+v %v, %d left", code, result, err, objects.left)
		}
		if len(h.effects()) != 1 {
			t.Errorf("%s: %v", code, h.effects())
		}
	}
}

func TestAStepWhoseInputsCannotBeReadHasNoEffectAndSaysSo(t *testing.T) {
	for code, want := range map[deployments.Code]struct {
		failure string
		outcome engine.Outcome
	}{
		deployments.CodeUnauthorized: {deployments.ErrorPostponed, ""},
		deployments.CodeForbidden:    {deployments.ErrorPostponed, ""},
		deployments.CodeUnavailable:  {deployments.ErrorPostponed, ""},
		deployments.CodeFormat:       {"", engine.OutcomeFailed},
	} {
		objects := &refusing{Objects: &bucket.Memory{}}
		h := newHouseOn(t, objects)
		h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
		session, err := h.acts.sessions.Hosted(t.Context(), h.update, h.base)
		if err != nil {
			t.Fatal(err)
		}
		create := h.create(texts("name", "n"))
		if create.New.Inputs, err = session.Update().Values.Encode(t.Context(),
			texts("name", "n", "note", strings.Repeat("long ", 5000))); err != nil {
			t.Fatal(err)
		}
		objects.refuse("get", "/blob/", code, 1)
		result, err := h.step(create, 1)
		if errorType(err) != want.failure || result.Outcome != want.outcome || result.Op != 1 && err == nil ||
			len(h.effects()) > 0 {
			t.Errorf("%s: %+v %v after %v", code, result, err, h.effects())
		}
	}
}

func TestAClaimOfAnUpdateThatIsOverGivesTheStackBack(t *testing.T) {
	h := newHouse(t)
	over := deployments.UpdateName{StackName: testStack, Version: "1"}
	if err := h.store.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: over, Status: "cancelled",
		Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	_, err := call[deployments.Claimed](h, h.acts.ClaimStack, deployments.ClaimInput{
		Update: over, Number: 1, Request: deployments.UpdateRequest{Kind: engine.KindDestroy,
			Submitted: h.submitted(testStack)},
	})
	if errorType(err) != string(deployments.CodeConflict) {
		t.Errorf("it comes to %v", err)
	}
	if head, err := h.store.Head(t.Context(), testStack); err != nil || head.Active != nil {
		t.Errorf("the stack is held by %+v %v", head.Active, err)
	}
}

// Whoever reads the log of an update that has ended reads all of it.
func TestAnUpdateHasNotEndedBeforeItsLogHasItsSummary(t *testing.T) {
	objects := &refusing{Objects: &bucket.Memory{}}
	h := newHouseOn(t, objects)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	settled := deployments.CommitInput{Update: h.update, Base: h.base,
		Result: engine.Result{Status: engine.StatusSucceeded}}
	objects.refuse("put", "/events/"+eventlog.RunStream, deployments.CodeUnavailable, 1)
	if _, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, settled); err == nil {
		t.Fatal("it settles without a summary")
	}
	if info, err := h.acts.Store.Updates.Info(t.Context(), h.update); err != nil || !info.Ended.IsZero() {
		t.Errorf("it has ended: %+v %v", info, err)
	}
	if _, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, settled); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	parts, err := h.acts.Store.Updates.ReadEvents(t.Context(), updates.Part{Update: h.update, Stream: eventlog.RunStream,
		Number: 1}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		events, err := eventlog.Decode(part)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			switch {
			case e.End != nil:
				kinds = append(kinds, "end")
			case e.Event != nil && e.Event.SummaryEvent != nil:
				kinds = append(kinds, "summary")
			}
		}
	}
	if !slices.Equal(kinds, []string{"summary", "end"}) {
		t.Errorf("its log has %v", kinds)
	}
}
