package activities

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/runlink/runlinktest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// coreRun is a minimal Run: it plans and carries out each registration through the activities, and replies as the
// contract of the engine says. It has no replacements, deletions or epochs.
type coreRun struct {
	t     testing.TB
	house *house
	goal  engine.Goal

	mu      sync.Mutex
	changed *sync.Cond
	replies []engine.Reply
	heard   []deployments.Message
	runlinktest.Order
	states   []engine.State // in order of completion
	old      map[urn.URN]engine.State
	op       int
	failNext int // signals to fail
	seen     map[urn.URN]engine.State
	before   chan struct{} // closed when the last registration that was answered ahead is handled
}

func newCoreRun(t testing.TB, h *house, goal engine.Goal, old []engine.State) *coreRun {
	r := &coreRun{t: t, house: h, goal: goal, old: map[urn.URN]engine.State{}, seen: map[urn.URN]engine.State{}}
	for _, s := range old {
		r.old[s.URN] = s
	}
	r.changed, r.before = sync.NewCond(&r.mu), make(chan struct{})
	close(r.before)
	return r
}

func (r *coreRun) Signal(_ context.Context, _ deployments.UpdateName, m deployments.Messages) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failNext > 0 {
		r.failNext--
		return fmt.Errorf("no connection")
	}
	for _, item := range r.Take(m) {
		r.heard = append(r.heard, item)
		before, handled := r.before, make(chan struct{})
		if a := item.Registered; a != nil && a.Ahead != nil { // what follows may refer to it
			r.before = handled
		}
		go func() {
			defer close(handled)
			<-before
			r.handle(item)
		}()
	}
	return nil
}

func (r *coreRun) Poll(ctx context.Context, _ deployments.UpdateName, p deployments.Poll) (deployments.Replies, error) {
	if p.Messages != nil {
		if err := r.Signal(ctx, deployments.UpdateName{}, *p.Messages); err != nil {
			return deployments.Replies{}, err
		}
	}
	poll, end := context.WithTimeout(ctx, 100*time.Millisecond) // as the Run does, it answers without a reply at last
	defer end()
	stop := context.AfterFunc(poll, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.replies) <= p.Cursor && poll.Err() == nil {
		r.changed.Wait()
	}
	return deployments.Replies{Replies: r.replies[min(p.Cursor, len(r.replies)):], Cursor: len(r.replies)}, nil
}

func (r *coreRun) reply(reply engine.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replies = append(r.replies, reply)
	r.changed.Broadcast()
}

func (r *coreRun) handle(m deployments.Message) {
	switch {
	case m.Registered != nil:
		r.reply(r.register(*m.Registered))
	case m.ReadRequested != nil:
		r.reply(r.read(*m.ReadRequested))
	case m.OutputsRegistered != nil:
		o := m.OutputsRegistered
		r.mu.Lock()
		for i := range r.states {
			if r.states[i].URN == o.URN {
				r.states[i].Outputs = o.Outputs
			}
		}
		r.mu.Unlock()
		r.reply(engine.Reply{Epoch: o.Epoch, Seq: o.Seq, URN: o.URN, Object: o.Outputs, Result: engine.ResultSuccess})
	}
}

func (r *coreRun) urn(parent urn.URN, t tokens.Type, name string) urn.URN {
	var parentType tokens.Type
	if parent != "" && parent.QualifiedType() != "pulumi:pulumi:Stack" {
		parentType = parent.QualifiedType()
	}
	return urn.New(tokens.QName(r.goal.Stack), tokens.PackageName(r.goal.Project), parentType, t, name)
}

func (r *coreRun) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.op++
	return r.op
}

// provider returns the provider of a reference, as commands name it.
func (r *coreRun) provider(ref string) *engine.Provider {
	if ref == "" {
		return nil
	}
	parsed, err := providers.ParseReference(ref)
	if err != nil {
		r.t.Errorf("provider %q: %v", ref, err)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &engine.Provider{Ref: ref, Inputs: r.seen[parsed.URN()].Inputs}
}

func seedOf(u urn.URN) []byte {
	sum := sha256.Sum256([]byte(u))
	return sum[:]
}

func (r *coreRun) register(m engine.Registered) engine.Reply {
	u := r.urn(m.Parent, m.Type, m.Name)
	refused := engine.Reply{Epoch: m.Epoch, Seq: m.Seq, URN: u, Result: engine.ResultFail}
	op := r.next()
	state := engine.State{
		Key: engine.Key(fmt.Sprintf("o%d", op)), URN: u, Type: m.Type, Custom: m.Custom, Parent: m.Parent,
		Provider: m.Provider, Inputs: m.Inputs, Dependencies: m.Dependencies,
		PropertyDependencies:    m.PropertyDependencies,
		AdditionalSecretOutputs: m.AdditionalSecretOutputs, Trigger: m.Trigger,
	}
	if !m.Custom {
		return r.done(m, state)
	}
	step := engine.Step{
		Op: op, Kind: engine.StepCreate, URN: u, Type: m.Type, New: &state, Provider: r.provider(m.Provider),
		Seed: seedOf(u), Check: true, Preview: r.goal.DryRun,
	}
	if old, ok := r.old[u]; ok {
		planned := r.plan(m, op, u, old)
		if planned.Error != "" || len(planned.Failures) > 0 {
			refused.Error = planned.Error + fmt.Sprint(planned.Failures)
			return refused
		}
		state.Inputs, state.ID = planned.Inputs, old.ID
		switch planned.Diff.Change {
		case engine.ChangeNone:
			state.Outputs = old.Outputs
			return r.done(m, state)
		case engine.ChangeUpdate:
			step.Kind, step.Old, step.Check = engine.StepUpdate, &old, false
		default:
			refused.Error = "a replacement of " + strings.Join(planned.Diff.ReplaceKeys, ",")
			return refused
		}
	}
	finished, err := call[engine.StepFinished](r.house, r.house.acts.Step, deployments.StepInput{
		Update: r.house.update, Base: r.house.base, Step: step, Round: 1,
	})
	if err != nil || finished.Outcome != engine.OutcomeDone && finished.Outcome != engine.OutcomePartial {
		refused.Error = fmt.Sprint(finished.Error, finished.Failures, err)
		return refused
	}
	if finished.Inputs != nil {
		state.Inputs = *finished.Inputs
	}
	state.ID, state.Outputs, state.InitErrors = finished.ID, finished.Outputs, finished.InitErrors
	return r.done(m, state)
}

func (r *coreRun) plan(m engine.Registered, op int, u urn.URN, old engine.State) engine.Planned {
	out, err := call[deployments.PlanOutput](r.house, r.house.acts.PlanResources, deployments.PlanInput{
		Update: r.house.update, Base: r.house.base, Plans: []engine.Plan{{
			Op: op, URN: u, Goal: m.Registration, Old: &old, Provider: r.provider(m.Provider), Seed: seedOf(u),
			Preview: r.goal.DryRun,
		}},
	})
	if err != nil || len(out.Plans) != 1 {
		return engine.Planned{Error: fmt.Sprint(err)}
	}
	return out.Plans[0]
}

func (r *coreRun) done(m engine.Registered, state engine.State) engine.Reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, state)
	r.seen[state.URN] = state
	return engine.Reply{
		Epoch: m.Epoch, Seq: m.Seq, URN: state.URN, ID: state.ID, Object: state.Outputs, Result: engine.ResultSuccess,
		Unknown: r.goal.DryRun,
	}
}

func (r *coreRun) read(m engine.ReadRequested) engine.Reply {
	u := r.urn(m.Parent, m.Type, m.Name)
	op := r.next()
	state := engine.State{
		Key: engine.Key(fmt.Sprintf("o%d", op)), URN: u, Type: m.Type, Custom: true, External: true, ID: m.ID,
		Parent: m.Parent, Provider: m.Provider, Inputs: m.Inputs,
	}
	finished, err := call[engine.StepFinished](r.house, r.house.acts.Step, deployments.StepInput{
		Update: r.house.update, Base: r.house.base, Round: 1, Step: engine.Step{
			Op: op, Kind: engine.StepRead, URN: u, Type: m.Type, New: &state, Provider: r.provider(m.Provider),
		},
	})
	if err != nil || finished.Outcome != engine.OutcomeDone {
		return engine.Reply{Epoch: m.Epoch, Seq: m.Seq, URN: u, Result: engine.ResultFail,
			Error: fmt.Sprint(finished.Error, err)}
	}
	state.ID, state.Outputs = finished.ID, finished.Outputs
	return r.done(engine.Registered{Epoch: m.Epoch, Seq: m.Seq}, state)
}

// find returns the state with a name.
func (r *coreRun) find(name string) engine.State {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.states {
		if s.URN.Name() == name {
			return s
		}
	}
	r.t.Fatalf("no resource %q among %d", name, len(r.states))
	return engine.State{}
}

// exited returns the reported exit of the program, or nil.
func (r *coreRun) exited() *engine.ProgramExited {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.heard {
		if m.Exited != nil {
			return m.Exited
		}
	}
	return nil
}

// told returns why a request of the program failed: the first refusal of its host or of the run.
func (r *coreRun) told() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.heard {
		if m.Refused != nil {
			return m.Refused.Message
		}
	}
	for _, reply := range r.replies {
		if reply.Error != "" {
			return reply.Error
		}
	}
	return ""
}

// deltas returns the deltas of the run's states.
func (r *coreRun) deltas() []engine.Delta {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []engine.Delta
	for i, s := range r.states {
		list = append(list, engine.Delta{Seq: i + 1, Kind: engine.DeltaPut, State: &s})
	}
	return list
}
