package step

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// withoutOutcomes is an object store that does not store outcomes, as often as left says.
type withoutOutcomes struct {
	bucket.Objects
	code deployments.Code
	left int
}

func (r *withoutOutcomes) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	if r.left > 0 && strings.Contains(key, "/outcome/") {
		r.left--
		return "", deployments.Errorf(r.code, "it says no")
	}
	return r.Objects.Put(ctx, key, data, c)
}

// stepsOf are the steps of an update of a stack in a store.
func stepsOf(t *testing.T, objects bucket.Objects) *Steps {
	t.Helper()
	store, err := statestore.New(objects, statestore.Options{Master: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	name := deployments.StackName{Organization: "organization", Project: "test", Stack: "dev"}
	if err := store.CreateStack(t.Context(), name, nil); err != nil {
		t.Fatal(err)
	}
	id, err := store.StackID(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return &Steps{store: store, update: deployments.UpdateName{StackName: name, Version: "1"}, stackID: id}
}

func TestAnOutcomeThatAnEarlierRoundLeftCountsOnlyIfItHadItsEffect(t *testing.T) {
	s := stepsOf(t, &bucket.Memory{})
	for op, c := range []struct {
		first, second, want engine.Outcome
	}{
		{engine.OutcomeFailed, "", ""}, {engine.OutcomeDone, "", engine.OutcomeDone},
		{engine.OutcomePartial, "", engine.OutcomePartial},
		{engine.OutcomeFailed, engine.OutcomeDone, engine.OutcomeDone},
		{"", engine.OutcomeFailed, engine.OutcomeFailed},
	} {
		for round, outcome := range []engine.Outcome{c.first, c.second} {
			if outcome != "" {
				s.leaveOutcome(t.Context(), round+1, engine.Step{}, engine.StepFinished{Op: op + 1, Outcome: outcome})
			}
		}
		if left, ok, err := s.leftOutcome(t.Context(), op+1, 2); err != nil || left.Outcome != c.want ||
			ok != (c.want != "") {
			t.Errorf("%+v: %+v %t %v", c, left, ok, err)
		}
	}
}

func TestAnOutcomeIsStoredOnceTheStoreAcceptsIt(t *testing.T) {
	for _, code := range []deployments.Code{
		deployments.CodeUnauthorized, deployments.CodeForbidden, deployments.CodeInternal, deployments.CodeInvalid,
		deployments.CodeUnavailable,
	} {
		objects := &withoutOutcomes{Objects: &bucket.Memory{}, code: code, left: 3}
		s := stepsOf(t, objects)
		s.leaveOutcome(t.Context(), 1, engine.Step{}, engine.StepFinished{Op: 1, Outcome: engine.OutcomeDone, ID: "n"})
		if left, ok, err := s.leftOutcome(t.Context(), 1, 1); err != nil || !ok || left.ID != "n" {
			t.Errorf("%s: it has left %+v %t %v", code, left, ok, err)
		}
	}
}
