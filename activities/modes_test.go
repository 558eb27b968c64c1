package activities

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// maintained puts the service of a house into maintenance.
func maintained(t *testing.T, h *house) {
	t.Helper()
	if err := h.store.Organizations.SetMode(t.Context(), deployments.Mode{Kind: deployments.ModeMaintenance,
		Reason: "Temporal is upgraded", Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
}

// beginning is the input of the first claim of an update of a stack.
func beginning(h *house, version string, r deployments.UpdateRequest) deployments.ClaimInput {
	r.Stack, r.Submitted, r.Kind = testStack, h.submitted(testStack), engine.KindDestroy
	return deployments.ClaimInput{Update: deployments.UpdateName{StackName: testStack, Version: version}, Request: r,
		Number: 1}
}

func TestInMaintenanceNoUpdateBeginsUntilItEnds(t *testing.T) {
	h := newHouse(t)
	maintained(t, h)
	for _, in := range []deployments.ClaimInput{
		beginning(h, "1", deployments.UpdateRequest{}), beginning(h, "p1", deployments.UpdateRequest{DryRun: true}),
	} {
		_, err := call[deployments.Claimed](h, h.acts.ClaimStack, in)
		var waits *temporal.ApplicationError
		if !errors.As(err, &waits) || waits.Type() != deployments.ErrorPostponed || waits.NonRetryable() ||
			!strings.Contains(waits.Message(), "in maintenance until") ||
			!strings.Contains(waits.Message(), "Temporal is upgraded") {
			t.Errorf("the claim of %s ends with %v", in.Update, err)
		}
	}
	if err := h.store.Organizations.SetMode(t.Context(), deployments.Mode{}); err != nil {
		t.Fatal(err)
	}
	if claimed := h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy}); claimed.Worker == "" {
		t.Error("it does not begin after the maintenance")
	}
}

func TestInMaintenanceAnUpdateThatHasBegunIsClaimedAgain(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	maintained(t, h)
	again := beginning(h, h.update.Version, deployments.UpdateRequest{})
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, again); err != nil { // its answer was lost
		t.Errorf("the first claim, once more: %v", err)
	}
	h.acts.sessions.End(t.Context(), h.update)
	again.Number = 2
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, again); err != nil {
		t.Errorf("after the loss of its worker: %v", err)
	}
}

func TestInMaintenanceTheClientOfALeaseIsToldThatItDoesNotBegin(t *testing.T) {
	h := newHouse(t)
	maintained(t, h)
	in := beginning(h, "1", deployments.UpdateRequest{Lease: &deployments.Lease{Duration: time.Minute}})
	_, err := call[struct{}](h, h.acts.BeginLease, deployments.UpdateInput{Update: in.Update, Request: in.Request})
	var told *temporal.ApplicationError
	if !errors.As(err, &told) || told.Type() != string(deployments.CodeMaintenance) || !told.NonRetryable() {
		t.Errorf("it ends with %v", err)
	}
}
