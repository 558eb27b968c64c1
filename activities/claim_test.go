package activities

import (
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/session"
)

func TestAnUpdateWhoseCallerMayNotDeployAnyMoreDoesNotBegin(t *testing.T) {
	h := newHouse(t)
	token := deployments.Token{Name: "ci", Grant: &deployments.Grant{Role: deployments.RoleDeployer,
		Organization: testStack.Organization}}
	text, err := h.store.Access.CreateToken(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	caller, err := h.store.Access.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy, Authority: caller.Delegated()})
	if err := h.store.Access.RemoveToken(t.Context(), "ci"); err != nil {
		t.Fatal(err)
	}
	if again := h.reclaim(deployments.UpdateRequest{Authority: caller.Delegated()}); again.Worker == "" {
		t.Error("one that has begun does not go on")
	}
	waiting := deployments.ClaimInput{
		Update: deployments.UpdateName{StackName: testStack, Version: "2"}, Number: 1,
		Request: deployments.UpdateRequest{Stack: testStack, Kind: engine.KindDestroy, Authority: caller.Delegated(),
			Submitted: h.submitted(testStack)},
	}
	_, err = call[deployments.Claimed](h, h.acts.ClaimStack, waiting)
	if err == nil || !strings.Contains(err.Error(), "the update does not begin: the token ci may not do this any "+
		"more: the token was removed") {
		t.Errorf("one that waited: %v", err)
	}
}

func TestWhatTheServiceHasNotSubmittedDoesNotBegin(t *testing.T) {
	h := newHouse(t)
	first, lease := deployments.UpdateName{StackName: testStack, Version: "1"}, &deployments.Lease{}
	of := &deployments.Submission{StackID: "another", At: time.Now()}
	for name, r := range map[string]deployments.UpdateRequest{
		"a request without a submission":      {Kind: engine.KindDestroy},
		"a request for a client":              {Kind: engine.KindDestroy, Submitted: h.submitted(testStack), Lease: lease},
		"a request for an earlier stack":      {Kind: engine.KindDestroy, Submitted: of},
		"a preview without a submission":      {Kind: engine.KindUp, DryRun: true},
		"a preview for an earlier stack":      {Kind: engine.KindUp, DryRun: true, Submitted: of},
		"a preview that nobody waits for now": {Kind: engine.KindUp, DryRun: true, Submitted: h.yesterday()},
	} {
		r.Stack = testStack
		in := deployments.ClaimInput{Update: first, Request: r, Number: 1}
		if r.DryRun {
			in.Update.Version = "p-1"
		}
		if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, in); err == nil {
			t.Errorf("%s begins", name)
		}
	}
	for name, r := range map[string]deployments.UpdateRequest{
		"a lease without a submission": {Lease: lease},
		"a lease of an earlier stack":  {Lease: lease, Submitted: of},
		"a lease that a worker is for": {Submitted: h.submitted(testStack)},
	} {
		r.Stack, r.Kind = testStack, engine.KindUp
		if _, err := call[struct{}](h, h.acts.BeginLease, deployments.UpdateInput{Update: first, Request: r}); err == nil {
			t.Errorf("%s begins", name)
		}
	}
	if head, err := h.store.Head(t.Context(), testStack); err != nil || head.Active != nil || head.Next != 1 {
		t.Errorf("the head is %+v, %v", head, err)
	}
}

// yesterday is a submission that is older than a preview may be.
func (h *house) yesterday() *deployments.Submission {
	s := h.submitted(testStack)
	s.At = s.At.Add(-deployments.PreviewWindow - time.Minute)
	return s
}

func TestAPreviewIsExecutedByOneRunOfItsWorkflow(t *testing.T) {
	h := newHouse(t)
	r := deployments.UpdateRequest{DryRun: true, Kind: engine.KindRefresh}
	h.claim(r)
	r.Stack, r.Submitted = testStack, h.submitted(testStack)
	copied := deployments.ClaimInput{Update: h.update, Request: r, Number: 1}
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, copied); err != nil {
		t.Errorf("its own run claims it again: %v", err)
	}
	stored, err := h.store.Updates.Request(t.Context(), h.update)
	if err != nil || stored.Submitted.Run == "" {
		t.Fatalf("it is stored as %+v, %v", stored.Submitted, err)
	}
	stored.Submitted.Run = "the first"
	if err := h.store.Updates.PutRequest(t.Context(), h.update, stored); err != nil {
		t.Fatal(err)
	}
	for number := 1; number <= 2; number++ {
		copied.Number = number
		_, err := call[deployments.Claimed](h, h.acts.ClaimStack, copied)
		if errorType(err) != string(deployments.CodeConflict) {
			t.Errorf("another run claims it as number %d: %v", number, err)
		}
	}
	release(h)
	_, err = call[deployments.ProgramOutput](h, h.acts.RunProgram, deployments.ProgramInput{Update: h.update, Epoch: 1})
	if errorType(err) != deployments.ErrorNotStarted {
		t.Errorf("its program runs without a claim: %v", err)
	}
}

func TestAnOrganizationsUpdatesBeyondThoseThatAWorkerHostsWaitAndTakeNothing(t *testing.T) {
	h := newHouse(t)
	h.acts.sessions = session.New(session.Options{Store: h.store, Worker: "worker-1", Dir: t.TempDir(), Env: h.env,
		StateMemory: h.acts.StateMemory, MostHosted: 1})
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy, DryRun: true})
	first := h.update
	in := deployments.ClaimInput{Number: 1, Update: deployments.UpdateName{StackName: testStack, Version: "1"},
		Request: deployments.UpdateRequest{Stack: testStack, Kind: engine.KindDestroy, Submitted: h.submitted(testStack)}}
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, in); !failure.IsType(err, deployments.ErrorPostponed) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := h.store.Updates.Request(t.Context(), in.Update); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("its request is stored: %v", err)
	}
	h.acts.sessions.End(t.Context(), first)
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, in); err != nil {
		t.Errorf("once the worker has room: %v", err)
	}
}

func TestMissingUpdatesAreNamedWithWhatLooksForTheirResources(t *testing.T) {
	for want, got := range map[string]string{
		"of the update 3 of":       missingUpdates(3, 3),
		"of the updates 1 to 2 of": missingUpdates(1, 2),
	} {
		if !strings.Contains(got, want) || !strings.Contains(got, "`deployctl up --refresh --adopt`") {
			t.Errorf("it says %q, without %q", got, want)
		}
	}
}
