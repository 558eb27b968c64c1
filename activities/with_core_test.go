package activities

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/runlink/runlinktest"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// realRun drives the real core with the real activities in this process, as a Run workflow does, but without Temporal.
type realRun struct {
	house   *house
	core    *engine.Run
	replies []engine.Reply
	deltas  []engine.Delta
	emits   []engine.Emit
	// forgiving: what cannot be planned, or has inputs that its provider does not accept, fails as a step instead, so
	// that an update with ContinueOnError goes on.
	forgiving bool

	mu sync.Mutex
	runlinktest.Order
	done chan struct{}
}

func (r *realRun) Signal(_ context.Context, _ deployments.UpdateName, m deployments.Messages) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hear(m)
	r.issue()
	return nil
}

// hear passes the program's messages to the core. The caller holds the lock.
func (r *realRun) hear(m deployments.Messages) {
	for _, item := range r.Take(m) {
		switch {
		case item.Started != nil:
			r.core.Handle(*item.Started)
		case item.Registered != nil:
			r.core.Handle(*item.Registered)
		case item.OutputsRegistered != nil:
			r.core.Handle(*item.OutputsRegistered)
		case item.ReadRequested != nil:
			r.core.Handle(*item.ReadRequested)
		case item.Exited != nil:
			r.core.Handle(*item.Exited)
		case item.Refused != nil:
			r.core.Handle(*item.Refused)
		}
	}
}

func (r *realRun) Poll(ctx context.Context, _ deployments.UpdateName, p deployments.Poll) (deployments.Replies, error) {
	if p.Messages != nil {
		if err := r.Signal(ctx, deployments.UpdateName{}, *p.Messages); err != nil {
			return deployments.Replies{}, err
		}
	}
	for range 20 {
		r.mu.Lock()
		n := len(r.replies)
		got := slices.Clone(r.replies[min(p.Cursor, n):])
		r.mu.Unlock()
		if len(got) > 0 {
			return deployments.Replies{Replies: got, Cursor: n}, nil
		}
		if failure.Pause(ctx, 5*time.Millisecond) != nil {
			return deployments.Replies{}, ctx.Err()
		}
	}
	return deployments.Replies{Cursor: p.Cursor}, nil
}

// issue starts the commands that may start. The caller holds the lock.
func (r *realRun) issue() {
	for ready := r.core.Ready(); !ready.Empty(); ready = r.core.Ready() {
		r.deltas = append(r.deltas, ready.Changes...)
		r.replies = append(r.replies, ready.Replies...)
		r.emits = append(r.emits, ready.Events...)
		for _, c := range ready.Start {
			go r.carryOut(c)
		}
	}
	if _, over := r.core.Result(); over {
		select {
		case <-r.done:
		default:
			close(r.done)
		}
	}
}

// forgive returns the result of a plan, and of a forgiving run one without an error.
func (r *realRun) forgive(p engine.Plan, planned engine.Planned) engine.Planned {
	if r.forgiving && (planned.Error != "" || len(planned.Failures) > 0) {
		return engine.Planned{Op: planned.Op, Inputs: p.Goal.Inputs, Analysis: planned.Analysis}
	}
	return planned
}

func (r *realRun) carryOut(c engine.Command) {
	h := r.house
	var event engine.Event
	var err error
	var carried *deployments.Messages
	switch c := c.(type) {
	case engine.Plan:
		var out deployments.PlanOutput
		out, err = call[deployments.PlanOutput](h, h.acts.PlanResources, deployments.PlanInput{Update: h.update, Base: h.base,
			Plans: []engine.Plan{c}})
		if carried = out.Messages; err == nil {
			event = r.forgive(c, out.Plans[0])
		}
	case engine.Step:
		var out deployments.StepOutput
		out, err = call[deployments.StepOutput](h, h.acts.Step, deployments.StepInput{Update: h.update, Base: h.base,
			Step: c, Round: 1})
		event, carried = out.StepFinished, out.Messages
		if r.forgiving && len(out.Failures) > 0 {
			event = engine.StepFinished{Op: c.Op, Outcome: engine.OutcomeFailed, Error: "the inputs are not valid"}
		}
		if errorType(err) == deployments.ErrorUnknownOutcome {
			event, err = engine.StepFinished{Op: c.Op, Outcome: engine.OutcomeUnknown}, nil
		}
	case engine.Settle:
		event, err = call[engine.StepFinished](h, h.acts.Settle, deployments.SettleInput{Update: h.update, Base: h.base,
			Settle: c})
	case engine.Pause:
		event = engine.PauseEnded{Op: c.Op}
	case engine.Cascade:
		event, err = call[engine.CascadePlanned](h, h.acts.PlanCascade,
			deployments.CascadeInput{Update: h.update, Base: h.base, Cascade: c})
	case engine.Compare:
		event, err = call[engine.ProviderDiffed](h, h.acts.CompareProviders,
			deployments.CompareInput{Update: h.update, Base: h.base, Compare: c})
	}
	if err != nil {
		h.t.Errorf("%T: %v", c, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.core.Handle(event)
	if carried != nil {
		r.hear(*carried)
	}
	r.issue()
}

// carryOut runs a whole update with the real core and commits it.
func (h *house) carryOut(request deployments.UpdateRequest) (engine.Result, *realRun) {
	h.t.Helper()
	claimed := h.claim(request)
	headers, err := call[deployments.Headers](h, h.acts.ReadHeaders, deployments.HeadersInput{Update: h.update,
		Base: h.base})
	if err != nil {
		h.t.Fatal(err)
	}
	r := &realRun{house: h, core: engine.New(claimed.Goal, headers.States, headers.Pending), done: make(chan struct{})}
	h.runs.mu.Lock()
	h.runs.run = r
	h.runs.mu.Unlock()
	if claimed.HasProgram {
		out, err := call[deployments.ProgramOutput](h, h.acts.RunProgram, deployments.ProgramInput{
			Update: h.update, Base: h.base, Goal: claimed.Goal, Epoch: 1,
		})
		if err != nil || out.Lost {
			h.t.Fatalf("%+v %v", out, err)
		}
	} else {
		r.mu.Lock()
		r.issue()
		r.mu.Unlock()
	}
	waittest.For(h.t, "the run ends", r.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	result, _ := r.core.Result()
	if _, err := call[struct{}](h, h.acts.Save, deployments.SaveInput{
		Update: h.update, Base: h.base, Number: 1, Deltas: r.deltas, Events: r.emits,
	}); err != nil {
		h.t.Fatal(err)
	}
	if _, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, deployments.CommitInput{
		Update: h.update, Base: h.base, Saves: 1, Result: result,
	}); err != nil {
		h.t.Fatal(err)
	}
	release(h)
	return result, r
}

func TestAStackLivesItsLifeThroughTheRealCore(t *testing.T) {
	h := newHouse(t)
	program := func(script string) string { return h.upload(scenarioProject(script)) }
	one := `
steps:
  - {register: a, type: 'toy:index:Thing', properties: {size: "1", zone: x}}
  - {register: b, type: 'toy:index:Thing', properties: {name: "${a.name}-b", secret: !secret hush}}
outputs: {name: '${b.name}'}
`
	expect := func(what string, request deployments.UpdateRequest, changes map[string]int, effects int) {
		t.Helper()
		before := len(h.effects())
		result, run := h.carryOut(request)
		if result.Status != engine.StatusSucceeded || result.IntegrityError != "" {
			t.Fatalf("%s: %+v\n%+v", what, result, run.emits)
		}
		for kind, n := range changes {
			if result.Changes[kind] != n {
				t.Errorf("%s: %d %s in %v", what, result.Changes[kind], kind, result.Changes)
			}
		}
		if did := len(h.effects()) - before; did != effects {
			t.Errorf("%s: %d effects: %v", what, did, h.effects())
		}
		if log := h.log(); strings.Contains(log, "hush") || !strings.Contains(log, "summaryEvent") {
			t.Errorf("%s: the log is %s", what, log)
		}
	}
	expect("a preview of a create", deployments.UpdateRequest{DryRun: true, Bundle: program(one)},
		map[string]int{"create": 3}, 0)
	expect("a create", deployments.UpdateRequest{Bundle: program(one)}, map[string]int{"create": 3}, 2)
	expect("no change", deployments.UpdateRequest{Bundle: program(one)},
		map[string]int{"create": 0, "update": 0, "same": 3}, 0)
	two := strings.Replace(one, `size: "1"`, `size: "2"`, 1)
	expect("an update", deployments.UpdateRequest{Bundle: program(two)}, map[string]int{"update": 1}, 1)
	expect("a refresh", deployments.UpdateRequest{Kind: engine.KindRefresh}, nil, 0)
	three := strings.Replace(two, `zone: x`, `zone: y, name: other`, 1)
	expect("a replacement of both", deployments.UpdateRequest{Bundle: program(three)}, map[string]int{"replace": 2}, 4)
	expect("a preview of a delete", deployments.UpdateRequest{DryRun: true, Bundle: program("steps: []")},
		map[string]int{"delete": 2}, 0)
	expect("a delete", deployments.UpdateRequest{Bundle: program("steps: [{register: c, type: 'toy:index:Thing'}]")},
		map[string]int{"delete": 2, "create": 1}, 3)
	expect("a destroy", deployments.UpdateRequest{Kind: engine.KindDestroy}, nil, 1)
	head, err := h.store.Head(t.Context(), testStack)
	if err != nil || head.Resources != 0 {
		t.Errorf("%+v %v", head, err)
	}
}

func TestALostCreateIsFoundAgainThroughTheRealCore(t *testing.T) {
	h := newHouse(t)
	script := "steps: [{register: a, type: 'toy:index:Thing', properties: {do: die-after}}]"
	result, run := h.carryOut(deployments.UpdateRequest{
		Bundle: h.upload(scenarioProject(script)),
		Config: map[string]deployments.ConfigValue{stackkeys.Settle: {Value: `{"` + thingType +
			`": {"read": "property:name"}}`}},
	})
	if result.Status != engine.StatusSucceeded || len(h.effects()) != 1 {
		t.Errorf("%+v %v %+v", result, h.effects(), run.emits)
	}
}

func TestATriggerReplacesByItsValueAloneThroughTheRealCore(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct {
		trigger string
		changes map[string]int
	}{
		{"a", map[string]int{"create": 3}},
		{"!secret a", map[string]int{"same": 3}},
		{"!secret b", map[string]int{"replace": 2, "same": 1}},
		{"b", map[string]int{"same": 3}},
	} {
		result, run := h.carryOut(deployments.UpdateRequest{Bundle: h.upload(scenarioProject(`
steps:
  - {register: thing, type: 'toy:index:Thing', properties: {size: "1"}, options: {replacementTrigger: ` + c.trigger + `}}
  - {register: part, type: 'my:index:Part', component: true, options: {replacementTrigger: ` + c.trigger + `}}
`))})
		if result.Status != engine.StatusSucceeded || !maps.Equal(result.Changes, c.changes) {
			t.Errorf("%s: %+v %+v", c.trigger, result, run.emits)
		}
	}
}

func TestAnOutputOfAnUnchangedResourceBecomesSecretThroughTheRealCore(t *testing.T) {
	h := newHouse(t)
	for _, option := range []string{"", ", options: {additionalSecretOutputs: [region]}"} {
		result, run := h.carryOut(deployments.UpdateRequest{Bundle: h.upload(scenarioProject(
			"steps: [{register: thing, type: 'toy:index:Thing'" + option + "}]"))})
		if result.Status != engine.StatusSucceeded || result.Changes["update"] != 0 {
			t.Errorf("%+v %+v", result, run.emits)
		}
		secret := false
		for _, d := range run.deltas {
			if d.State != nil && d.State.Type == thingType {
				secret = h.values(d.State.Outputs)["region"].IsSecret()
			}
		}
		if secret != (option != "") {
			t.Errorf("with the option %q the output is secret: %v", option, secret)
		}
	}
}
