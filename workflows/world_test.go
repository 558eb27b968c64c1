package workflows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

var theStack = deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}

// theStackID is the identity of theStack.
const theStackID = "this life"

var theUpdate = deployments.UpdateName{StackName: theStack, Version: "1"}

// world records the effects of these tests' activities: resources that exist, saves that were made.
type world struct {
	aside      map[string][]byte
	mu         sync.Mutex
	created    map[urn.URN]int
	saves      map[int]deployments.SaveInput
	base       []engine.State               // of the stack
	groups     []int                        // the sizes of the groups that were refreshed
	refreshing error                        // the error of each group
	notBegun   int                          // how many the first large group leaves
	rounds     []int                        // of steps, in order
	queues     []string                     // of steps
	dead       map[string]bool              // workers that do not answer
	outcomes   map[string]func(n int) error // by resource name: the error of its nth step, after its effect
	calls      map[string]int               // steps by resource name
	awaits     map[string]int               // by resource name: how many steps find it not ready
	settled    engine.Outcome
	settling   error                                    // the error of settling, if not nil
	looked     []int                                    // the rounds that were settled
	inquired   []string                                 // the workers that were asked about lost attempts
	answering  func(n int) (engine.StepFinished, error) // what the nth of them says; nil: it knows nothing
	repeated   int                                      // the attempt of which every result is; 0: its own
	asked      int                                      // reports of a lost worker
	away       int                                      // saves that fail first
	unsavable  bool                                     // every save fails for good
	putting    func(*testsuite.TestWorkflowEnvironment) // while a core is spilled
	env        *testsuite.TestWorkflowEnvironment
}

func newWorld() *world {
	return &world{
		created: map[urn.URN]int{}, saves: map[int]deployments.SaveInput{}, dead: map[string]bool{},
		outcomes: map[string]func(int) error{}, calls: map[string]int{}, settled: engine.OutcomeAbsent,
	}
}

var errNotStarted = temporal.NewNonRetryableApplicationError("another worker", deployments.ErrorNotStarted, nil)

var errUnknown = temporal.NewNonRetryableApplicationError("connection reset", deployments.ErrorUnknownOutcome, nil)

func (w *world) Step(ctx context.Context, in deployments.StepInput) (engine.StepFinished, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := activity.GetInfo(ctx).TaskQueue
	if w.dead[queue] {
		return engine.StepFinished{}, errNotStarted
	}
	name := in.Step.URN.Name()
	w.calls[name]++
	w.rounds, w.queues = append(w.rounds, in.Round), append(w.queues, queue)
	if outcome := w.outcomes[name]; outcome != nil {
		if err := outcome(w.calls[name]); err != nil {
			return engine.StepFinished{}, err
		}
	}
	w.created[in.Step.URN]++
	done := engine.StepFinished{Op: in.Step.Op, Attempt: cmp.Or(w.repeated, in.Attempt()), Outcome: engine.OutcomeDone,
		ID: "id-" + name, At: "2026-01-01T00:00:00Z"}
	if in.Step.Kind == engine.StepCreateReplacement {
		done.ID += "-again"
	}
	if w.calls[name] <= w.awaits[name] {
		done.Awaited, done.InitErrors = &engine.Awaited{For: "an address", After: 30}, []string{"an address"}
	}
	if in.Step.New != nil {
		done.Outputs, done.Inputs = in.Step.New.Inputs, &in.Step.New.Inputs
	}
	return done, nil
}

func (w *world) Settle(_ context.Context, in deployments.SettleInput) (engine.StepFinished, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = append(w.looked, in.Round)
	found := engine.StepFinished{Op: in.Settle.Step.Op, Attempt: cmp.Or(w.repeated, in.Attempt()), Outcome: w.settled}
	if w.settled == engine.OutcomeDone {
		found.ID, found.At = "id-"+in.Settle.Step.URN.Name(), "2026-01-01T00:00:00Z"
	}
	return found, w.settling
}

func (w *world) AskFormerWorker(
	ctx context.Context, in deployments.SettleInput,
) (known engine.StepFinished, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inquired = append(w.inquired, activity.GetInfo(ctx).TaskQueue)
	known.Outcome = engine.OutcomeUnknown
	if w.answering != nil {
		known, err = w.answering(len(w.inquired))
	}
	known.Op, known.Attempt = in.Settle.Step.Op, cmp.Or(w.repeated, in.Attempt())
	return known, err
}

func (w *world) PingWorker(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead[activity.GetInfo(ctx).TaskQueue] {
		return errNotStarted
	}
	return nil
}

func (w *world) PlanResources(_ context.Context, in deployments.PlanInput) (out deployments.PlanOutput, err error) {
	for _, p := range in.Plans {
		planned := engine.Planned{Op: p.Op, Inputs: p.Goal.Inputs}
		if p.Old != nil && !p.Old.Inputs.Same(p.Goal.Inputs) {
			planned.Diff.Change = engine.ChangeUpdate
		}
		out.Plans = append(out.Plans, planned)
	}
	return out, nil
}

func (w *world) Save(_ context.Context, in deployments.SaveInput) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsavable {
		return temporal.NewNonRetryableApplicationError("the keyring is damaged", string(deployments.CodeFormat), nil)
	}
	if w.away > 0 {
		w.away--
		return errors.New("the store is away")
	}
	w.saves[in.Number] = in
	return nil
}

// RefreshResources reads a group of resources; those with an outcome of their own are left to Step.
func (w *world) RefreshResources(
	ctx context.Context, in deployments.RefreshInput,
) (out deployments.RefreshOutput, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead[activity.GetInfo(ctx).TaskQueue] {
		return out, errNotStarted
	}
	w.groups = append(w.groups, len(in.Steps))
	if begun := len(in.Steps) - w.notBegun; begun > 0 {
		for _, s := range in.Steps[begun:] {
			out.NotBegun = append(out.NotBegun, s.Op)
		}
		in.Steps, w.notBegun = in.Steps[:begun], 0
	}
	for _, s := range in.Steps {
		if w.outcomes[s.URN.Name()] == nil {
			out.Done = append(out.Done, engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeDone, ID: s.Old.ID})
		}
	}
	return out, w.refreshing
}

func (w *world) ReadHeaders(context.Context, deployments.HeadersInput) (deployments.Headers, error) {
	return deployments.Headers{States: w.base}, nil
}

func (w *world) SpillPart(_ context.Context, p deployments.SpilledPart) error {
	if w.aside == nil {
		w.aside = map[string][]byte{}
	}
	if w.putting != nil {
		w.putting(w.env)
	}
	w.aside[fmt.Sprint(p.Name, p.Part)] = p.Data
	return nil
}

func (w *world) LoadSpilledPart(_ context.Context, p deployments.SpilledPart) ([]byte, error) {
	data, ok := w.aside[fmt.Sprint(p.Name, p.Part)]
	if !ok {
		return nil, fmt.Errorf("part %d of %s was never put aside", p.Part, p.Name)
	}
	return data, nil
}

// snapshot applies the saves and returns the names of the stored resources and the number of pending operations.
func (w *world) snapshot(t *testing.T) (names []string, pending int) {
	t.Helper()
	snap, seq := snapshot.New(nil, nil), 0
	for i := range len(w.saves) {
		save, ok := w.saves[i+1]
		if !ok {
			t.Fatalf("save %d is missing among %v", i+1, slices.Sorted(maps.Keys(w.saves)))
		}
		for _, d := range save.Deltas {
			if d.Seq <= seq {
				t.Fatalf("delta %d after %d", d.Seq, seq)
			}
			seq = d.Seq
			snap.Apply(d)
		}
	}
	states, operations := snap.States()
	for _, s := range states {
		names = append(names, s.URN.Name())
	}
	return names, len(operations)
}

// events returns the kinds of the emitted events, in order.
func (w *world) events() string {
	var out []string
	for i := range len(w.saves) {
		for _, e := range w.saves[i+1].Events {
			out = append(out, fmt.Sprintf("%s %s", e.Kind, e.URN.Name()))
		}
	}
	return strings.Join(out, ", ")
}

// program fakes a program's host: it registers resources one after another, each after the reply to the last, and
// goes on over a run's continue-as-new.
type program struct {
	names  []string
	epoch  int
	sent   int // messages of this epoch
	asked  int // resources registered in this epoch
	cursor int
	polls  int
	failed []string
	exited bool
	at     map[int]func(*testsuite.TestWorkflowEnvironment) // done when so many replies have come
}

const theType tokens.Type = "fake:index:Thing"

func (p *program) say(env *testsuite.TestWorkflowEnvironment, m deployments.Message) {
	env.SignalWorkflow(deployments.SignalMessages, deployments.Messages{
		Epoch: p.epoch, First: p.sent + 1, Items: []deployments.Message{m},
	})
	p.sent++
}

func (p *program) begin(env *testsuite.TestWorkflowEnvironment) {
	p.epoch++
	p.sent, p.asked, p.cursor = 0, 0, 0
	p.say(env, deployments.Message{Started: &engine.RunStarted{Epoch: p.epoch}})
	p.next(env)
	p.poll(env)
}

func (p *program) next(env *testsuite.TestWorkflowEnvironment) {
	if p.asked == len(p.names) {
		p.say(env, deployments.Message{Exited: &engine.ProgramExited{Epoch: p.epoch}})
		p.exited = true
		return
	}
	name := p.names[p.asked]
	p.asked++
	p.say(env, deployments.Message{Registered: &engine.Registered{
		Epoch: p.epoch, Seq: p.asked, Registration: engine.Registration{
			Type: theType, Name: name, Custom: true, Inputs: engine.Bag{Digest: name}, Digest: name,
		},
	}})
}

func (p *program) poll(env *testsuite.TestWorkflowEnvironment) {
	p.polls++
	epoch := p.epoch
	env.UpdateWorkflow(deployments.UpdatePoll, fmt.Sprintf("poll-%d", p.polls), &testsuite.TestUpdateCallback{
		OnComplete: func(v any, err error) {
			if err != nil || epoch != p.epoch {
				return // the next run answers it
			}
			replies := v.(deployments.Replies)
			p.cursor = replies.Cursor
			for _, r := range replies.Replies {
				if r.Result != engine.ResultSuccess {
					p.failed = append(p.failed, r.URN.Name())
				}
				if act := p.at[r.Seq]; act != nil {
					delete(p.at, r.Seq)
					act(env)
				}
				if epoch == p.epoch {
					p.next(env)
				}
			}
			if !replies.Done && epoch == p.epoch {
				p.poll(env)
			}
		},
	}, deployments.Poll{Epoch: epoch, Cursor: p.cursor})
}

// environment is a Temporal with these tests' activities, in which another worker is found for one that is lost.
func (w *world) environment(s Settings) *testsuite.TestWorkflowEnvironment {
	env := newEnvironment()
	New(s).Register(env)
	env.RegisterActivity(w)
	w.env = env
	env.OnSignalExternalWorkflow(anything, anything, anything, anything, anything).Return(
		func(_, workflowID, _, signal string, arg any) error {
			if signal == deployments.SignalLost { // the Update takes a while to find another
				w.mu.Lock()
				w.asked++
				w.mu.Unlock()
				env.RegisterDelayedCallback(func() {
					env.SignalWorkflow(deployments.SignalMessages,
						deployments.Messages{Items: []deployments.Message{{Worker: "second"}}})
				}, 10*time.Second)
			}
			return nil
		})
	return env
}

// ofTheUpdate completes the input of a Run.
func ofTheUpdate(in deployments.RunInput) deployments.RunInput {
	in.Update, in.Goal = theUpdate, engine.Goal{
		Kind: cmp.Or(in.Goal.Kind, engine.KindUp), Version: 1, Organization: "organization", Project: "shop",
		Stack: "dev", Parallel: 10, ReadAhead: in.Goal.ReadAhead, WaitOnUnknown: in.Goal.WaitOnUnknown,
	}
	in.Worker = "first"
	return in
}

// perform runs a Run over its continue-as-new, with the program beside it, and returns its result.
func perform(
	t *testing.T, w *world, p *program, in deployments.RunInput, at func(*testsuite.TestWorkflowEnvironment),
) (deployments.RunOutput, int) {
	t.Helper()
	in = ofTheUpdate(in)
	for runs := 1; ; runs++ {
		env := w.environment(Settings{})
		if runs == 1 && at != nil {
			at(env)
		}
		switch {
		case p == nil: // no program takes part
		case runs == 1:
			env.RegisterDelayedCallback(func() { p.begin(env) }, 0)
		case !p.exited || p.asked == len(p.names):
			env.RegisterDelayedCallback(func() { p.poll(env) }, 0)
		}
		env.ExecuteWorkflow(deployments.WorkflowRun, in)
		if !env.IsWorkflowCompleted() {
			t.Fatal("the run has not ended")
		}
		var again *workflow.ContinueAsNewError
		err := env.GetWorkflowError()
		if errors.As(err, &again) {
			in = deployments.RunInput{}
			if err := fromPayloads(again, &in); err != nil {
				t.Fatal(err)
			}
			continue
		}
		out, unsuccessful := OutputOf(err)
		if err == nil {
			err = env.GetWorkflowResult(&out)
		}
		if err != nil && !unsuccessful || unsuccessful != (out.Result.Status == engine.StatusFailed) {
			t.Fatalf("a run that came to %q ended with %v", out.Result.Status, err)
		}
		if out.LastSave != nil {
			w.saves[out.LastSave.Number] = *out.LastSave
		}
		return out, runs
	}
}
