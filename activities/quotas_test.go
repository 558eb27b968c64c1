package activities

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
)

// limit sets limits of the organization of a house.
func (h *house) limit(q deployments.Quota) {
	h.t.Helper()
	if err := h.store.Organizations.SetQuota(h.t.Context(), deployments.QuotaChange{Organization: testStack.Organization,
		Set: q}); err != nil {
		h.t.Fatal(err)
	}
}

// otherRuns has another update of the organization run, until the returned function ends it.
func (h *house) otherRuns() (end func()) {
	h.t.Helper()
	other := deployments.UpdateName{StackName: testStack, Version: "1"}
	other.Stack = "other"
	if err := h.store.CreateStack(h.t.Context(), other.StackName, nil); err != nil {
		h.t.Fatal(err)
	}
	if why, err := h.store.Organizations.PlaceUpdate(h.t.Context(), other); err != nil || why != "" {
		h.t.Fatal(why, err)
	}
	claim, err := h.store.Claim(h.t.Context(), statestore.Claimant{Update: other, Writer: "w"})
	if err != nil {
		h.t.Fatal(err)
	}
	return func() {
		if err := h.store.Commit(h.t.Context(), claim, statestore.Written{}); err != nil {
			h.t.Error(err)
		}
	}
}

// failsAs fails the test unless an activity ends with an error of a type, and says something.
func failsAs(t *testing.T, err error, kind, sentence string, again bool) {
	t.Helper()
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.Type() != kind || failed.NonRetryable() == again ||
		!strings.Contains(failed.Message(), sentence) {
		t.Errorf("it ends with %v, not as %s with %q", err, kind, sentence)
	}
}

const oneAtATime = "runs 1 update, and its quota allows 1 at a time"

func TestAnUpdateWaitsForAPlaceInTheQuotaAndKeepsIt(t *testing.T) {
	h := newHouse(t)
	h.limit(deployments.Quota{deployments.LimitUpdates: 1})
	end := h.otherRuns()
	first := beginning(h, "1", deployments.UpdateRequest{})
	_, err := call[deployments.Claimed](h, h.acts.ClaimStack, first)
	failsAs(t, err, deployments.ErrorPostponed, oneAtATime, true)
	preview := beginning(h, "p1", deployments.UpdateRequest{DryRun: true})
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, preview); err != nil {
		t.Errorf("a preview waits: %v", err)
	}
	end()
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, first); err != nil {
		t.Fatalf("once the other one has ended: %v", err)
	}
	h.limit(deployments.Quota{deployments.LimitUpdates: 0, deployments.LimitResources: 0,
		deployments.LimitWorkerMinutes: 0})
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, first); err != nil { // its answer was lost
		t.Errorf("the first claim, once more: %v", err)
	}
	h.acts.sessions.End(t.Context(), first.Update)
	first.Number = 2
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, first); err != nil {
		t.Errorf("after the loss of its worker: %v", err)
	}
}

func TestAnUpdateThatHasWaitedInItsQueueIsRefusedOnceTheQuotaIsUsedUp(t *testing.T) {
	h := newHouse(t)
	h.limit(deployments.Quota{deployments.LimitWorkerMinutes: 0})
	in := beginning(h, "1", deployments.UpdateRequest{})
	in.Request.Kind = engine.KindUp
	_, err := call[deployments.Claimed](h, h.acts.ClaimStack, in)
	failsAs(t, err, string(deployments.CodeQuota), "has used 0 minutes of the workers", false)
	if head, err := h.store.Head(t.Context(), testStack); err != nil || head.Active != nil {
		t.Errorf("its stack is %+v, %v", head, err)
	}
	in.Request.Kind, in.Request.Settle = engine.KindRefresh, &engine.Settling{}
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, in); err != nil {
		t.Errorf("what a lease has left is not settled: %v", err)
	}
}

func TestAnUpdateThatContinuesOneWhichHadBegunIsNotRefused(t *testing.T) {
	h := newHouse(t)
	h.limit(deployments.Quota{deployments.LimitWorkerMinutes: 0})
	former := deployments.UpdateName{StackName: testStack, Version: "1"}
	in := beginning(h, "2", deployments.UpdateRequest{RequestID: "first after 1"})
	in.Request.Kind = engine.KindRefresh
	for _, c := range []struct {
		status, next, request string
		begins                bool
	}{
		{string(deployments.StatusMigrated), "2", "", false}, {deployments.StatusSucceeded, "2", "first", false},
		{string(deployments.StatusMigrated), "3", "first", false},
		{string(deployments.StatusMigrated), "2", "another", false},
		{string(deployments.StatusMigrated), "2", "first", true},
	} {
		info := running(former, in.Request, time.Now())
		info.Status, info.Next = c.status, c.next
		err := h.store.Updates.PutInfo(t.Context(), info)
		if err == nil && c.request != "" {
			err = h.store.Updates.PutRequest(t.Context(), former, deployments.UpdateRequest{RequestID: c.request})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, in); (err == nil) != c.begins {
			t.Errorf("after %+v: %v", c, err)
		}
	}
}

func TestALeaseWaitsForAPlaceInTheQuotaAndIsRefusedAfterAWhile(t *testing.T) {
	h := newHouse(t)
	h.limit(deployments.Quota{deployments.LimitUpdates: 1})
	end := h.otherRuns()
	in := beginning(h, "1", deployments.UpdateRequest{Lease: &deployments.Lease{Duration: time.Minute}})
	lease := deployments.UpdateInput{Update: in.Update, Request: in.Request}
	h.acts.leasePlacePatience = -time.Second
	_, err := call[struct{}](h, h.acts.BeginLease, lease)
	failsAs(t, err, deployments.ErrorPostponed, oneAtATime, true)
	h.acts.leasePlacePatience = time.Hour
	begun := make(chan error)
	go func() {
		_, err := call[struct{}](h, h.acts.BeginLease, lease)
		begun <- err
	}()
	select {
	case err := <-begun:
		t.Fatalf("it begins beside the other one: %v", err)
	default:
	}
	end()
	if err := <-begun; err != nil {
		t.Error(err)
	}
	h.limit(deployments.Quota{deployments.LimitUpdates: 0})
	if _, err := call[struct{}](h, h.acts.BeginLease, lease); err != nil { // its answer was lost
		t.Error(err)
	}
}

func TestTheMinutesOfAWorkerAreCountedWhenAnUpdateEnds(t *testing.T) {
	h := newHouse(t)
	h.limit(deployments.Quota{deployments.LimitWorkerMinutes: 100})
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	info, err := h.store.Updates.Info(t.Context(), h.update)
	if err != nil {
		t.Fatal(err)
	}
	info.Started = info.Started.Add(-7 * time.Minute)
	h.acts.sessions.Find(h.update).Begun(info.Started)
	if err := h.store.Updates.PutInfo(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	end := deployments.CommitInput{Update: h.update, Base: h.base, Result: engine.Result{Status: engine.StatusSucceeded}}
	for range 2 {
		if _, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, end); err != nil {
			t.Fatal(err)
		}
	}
	list, err := h.store.Organizations.Quotas(t.Context(), testStack.Organization)
	if err != nil || list[0].Used[deployments.LimitWorkerMinutes] != 7 {
		t.Errorf("the use is %+v, %v", list, err)
	}
}

func TestAFileThatIsLargerThanItsBundleSaysIsNotUnpacked(t *testing.T) {
	h := newHouse(t)
	content := []byte("name: x\nruntime: yaml\n")
	digest := digestOf(content)
	if err := h.store.Programs.PutFile(t.Context(), testStack, digest, content); err != nil {
		t.Fatal(err)
	}
	bundle, err := h.store.Programs.PutManifest(t.Context(), testStack, deployments.Manifest{Files: []deployments.File{
		{Path: "Pulumi.yaml", Digest: digest, Mode: 0o600, Size: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	in := beginning(h, "1", deployments.UpdateRequest{Bundle: bundle, Environment: h.env})
	_, err = call[deployments.Claimed](h, h.acts.ClaimStack, in)
	failsAs(t, err, string(deployments.CodeInvalid), "has 22 bytes, and the bundle says 1", false)
}
