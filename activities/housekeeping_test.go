package activities

import (
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore"
)

func TestAWorkerLooksForWhatIsNotKeptAfterAnUpdateAndAtMostOnceAnHour(t *testing.T) {
	h := newHouse(t)
	looked := make(chan error, 2)
	h.acts.Housekeeping = Housekeeping{
		Retention: &statestore.Retention{Versions: 1},
		Collected: func(_ deployments.StackName, removed statestore.Collected, err error) {
			if removed != (statestore.Collected{}) {
				t.Errorf("it removed %+v, which is young", removed)
			}
			looked <- err
		},
	}
	for range 2 {
		h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
		_, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, deployments.CommitInput{
			Update: h.update, Base: h.base, Result: engine.Result{Status: engine.StatusSucceeded},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-looked; err != nil {
		t.Error(err)
	}
	now := time.Now()
	if h.acts.due(testStack, now.Add(collectEvery/2)) {
		t.Error("it is due after half an hour")
	}
	if !h.acts.due(testStack, now.Add(2*collectEvery)) || h.acts.due(testStack, now.Add(2*collectEvery)) {
		t.Error("it is not due once after two hours")
	}
	if len(looked) > 0 {
		t.Error("it looked twice")
	}
}

func TestWhatOnlyRecoveryWantedGoesAfterTheNextUpdate(t *testing.T) {
	h := newHouse(t)
	var updates []deployments.UpdateName
	for range 2 {
		h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
		updates = append(updates, h.update)
		if err := h.acts.Store.Updates.PutOutcome(t.Context(), h.update, 1, engine.StepFinished{Op: 3}); err != nil {
			t.Fatal(err)
		}
		_, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, deployments.CommitInput{
			Update: h.update, Base: h.base, Result: engine.Result{Status: engine.StatusSucceeded},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	left := func(u deployments.UpdateName) bool {
		outcome, err := h.acts.Store.Updates.Outcome(t.Context(), u, 3, 1)
		if err != nil {
			t.Fatal(err)
		}
		return outcome != nil
	}
	waittest.Until(t, "what is left of the first update is gone", func() bool { return !left(updates[0]) })
	if !left(updates[1]) {
		t.Error("what is left of the last update is gone, too")
	}
}
