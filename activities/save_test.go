package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
)

// refusing is a store that answers every write with one error.
type refusing struct {
	statestore.Objects
	err error
}

func (r *refusing) Put(ctx context.Context, key string, data []byte, c statestore.Condition) (string, error) {
	if r.err != nil {
		return "", r.err
	}
	return r.Objects.Put(ctx, key, data, c)
}

func TestASaveIsRepeatedWhateverTheStoreAnswers(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	objects := &refusing{Objects: &statestore.Memory{}}
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.CreateStack(t.Context(), testStack, nil); err != nil {
		t.Fatal(err)
	}
	h.acts.Store = store
	save := deployments.SaveInput{Update: h.update, Number: 1, Deltas: []engine.Delta{{Seq: 1, Kind: engine.DeltaEnd, Op: 1}}}
	for _, code := range []deployments.Code{deployments.CodeUnauthorized, deployments.CodeForbidden, deployments.CodeInternal, deployments.CodeUnavailable} {
		objects.err = deployments.Errorf(code, "it says no")
		_, err := call[struct{}](h, h.acts.Save, save)
		var answer *temporal.ApplicationError
		if !errors.As(err, &answer) || answer.NonRetryable() {
			t.Errorf("%s: %v", code, err)
		}
	}
}

func TestAClaimOfAnUpdateThatIsOverGivesTheStackBack(t *testing.T) {
	h := newHouse(t)
	over := deployments.UpdateName{StackName: testStack, Version: "1"}
	if err := h.store.PutInfo(t.Context(), deployments.UpdateInfo{Update: over, Status: "cancelled", Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	_, err := call[deployments.Claimed](h, h.acts.Claim, deployments.ClaimInput{
		Update: over, Epoch: 1, Request: deployments.UpdateRequest{Kind: engine.KindDestroy},
	})
	if errorType(err) != string(deployments.CodeConflict) {
		t.Errorf("it comes to %v", err)
	}
	if head, err := h.store.Head(t.Context(), testStack); err != nil || head.Active != nil {
		t.Errorf("the stack is held by %+v %v", head.Active, err)
	}
}

func TestAnOutcomeThatAnEarlierRoundLeftCountsOnlyIfItHadItsEffect(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	s, err := h.acts.hosted(t.Context(), h.update, h.base)
	if err != nil {
		t.Fatal(err)
	}
	for op, c := range []struct {
		first, second, want engine.Outcome
	}{
		{engine.OutcomeFailed, "", ""}, {engine.OutcomeDone, "", engine.OutcomeDone}, {engine.OutcomePartial, "", engine.OutcomePartial},
		{engine.OutcomeFailed, engine.OutcomeDone, engine.OutcomeDone}, {"", engine.OutcomeFailed, engine.OutcomeFailed},
	} {
		for round, outcome := range []engine.Outcome{c.first, c.second} {
			if outcome != "" {
				s.leaveOutcome(t.Context(), round+1, engine.StepFinished{Op: op + 1, Outcome: outcome})
			}
		}
		if left, ok, err := s.leftOutcome(t.Context(), op+1, 2); err != nil || left.Outcome != c.want || ok != (c.want != "") {
			t.Errorf("%+v: %+v %t %v", c, left, ok, err)
		}
	}
}
