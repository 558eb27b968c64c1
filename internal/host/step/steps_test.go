package step

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
)

func TestAPanicBeforeTheCallFailsTheStepAndOneAfterItLeavesItOpen(t *testing.T) {
	for sent, want := range map[bool]engine.Outcome{false: engine.OutcomeFailed, true: engine.OutcomeUndecidable} {
		at := &attempt{sent: sent} // without a session
		result, err := at.guarded(t.Context())
		if err != nil || result.Outcome != want || !strings.Contains(result.Error, "failed internally") {
			t.Errorf("sent %t: %+v %v", sent, result, err)
		}
	}
}

// quiet is the session of an update of which nothing is seen.
type quiet struct{ hosted.Host }

func (quiet) Redactor(context.Context, ...engine.Bag) failure.Redactor {
	return func(text string) string { return text }
}

// cancelling is a Temporal that has cancelled every activity.
type cancelling struct{}

func (cancelling) RecordActivityHeartbeat(context.Context, []byte, ...any) error {
	return temporal.NewCanceledError()
}

func TestAStepThatIsCancelledBeforeItsTurnHasNoEffect(t *testing.T) {
	store := stepsOf(t, &bucket.Memory{})
	values, err := store.store.Bags(t.Context(), statestore.Scope{Update: store.update})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Answers: NewAnswers(), Spent: &sync.Map{}, Parallel: 1, Update: &hosted.Update{
		Name: store.update, Store: store.store, Values: values, Host: quiet{},
	}})
	component := func(heart heartbeat.Heart) (out deployments.StepOutput) {
		t.Helper()
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.SetTestTimeout(waittest.Patience)
		env.RegisterActivityWithOptions(func(ctx context.Context, in deployments.StepInput) (deployments.StepOutput, error) {
			return s.Make(ctx, heart, in)
		}, activity.RegisterOptions{Name: "Step"})
		value, err := env.ExecuteActivity("Step", deployments.StepInput{Update: s.update, Round: 1, Step: engine.Step{
			Op: 1, Kind: engine.StepCreate, Type: "toy:index:Component", New: &engine.State{},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := value.Get(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if err := s.parallel.Acquire(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if out := component(cancelling{}); out.Outcome != engine.OutcomeCancelled {
		t.Errorf("%+v", out)
	}
	s.parallel.Release()
	if out := component(beating{}); out.Outcome != engine.OutcomeDone {
		t.Errorf("%+v", out)
	}
}

func TestAnAnswerIsKeptUntilTemporalHasItOrItsUpdateIsOver(t *testing.T) {
	u := deployments.UpdateName{StackName: deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"},
		Version: "1"}
	l := NewAnswers()
	kept := &answer{token: "token", result: engine.StepFinished{Op: 1, Outcome: engine.OutcomeDone},
		attempt: &attempt{session: &Steps{update: u, answers: l}, step: engine.Step{Op: 1}, round: 1}}
	gone := func(when string) {
		t.Helper()
		if _, known := l.of(kept.attempt.stepOf(), 1); known || len(l.byToken)+len(l.Updates()) > 0 {
			t.Errorf("%s it is kept: %v", when, l.Updates())
		}
	}
	l.keep(kept)
	if got, known := l.of(kept.attempt.stepOf(), 1); !known || got.Outcome != engine.OutcomeDone {
		t.Errorf("it knows %+v %t", got, known)
	}
	l.Reported([]byte("token"), nil)
	gone("after its report")
	l.SpentBy(Requested(u, deployments.UpdateRequest{}))
	l.keep(kept)
	l.Forget(u)
	gone("after the end of its update")
	l.keep(kept) // a step may end after that
	if !l.Updates()[u] {
		t.Error("nobody would forget it")
	}
	l.Forget(u)
	gone("after it was forgotten once more")
}
