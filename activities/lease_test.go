package activities

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
)

func TestALeaseWhoseJournalCannotBeReplayedEndsAsFailedWithWhatIsBeforeAndFreesItsStack(t *testing.T) {
	const made = `{"sequenceID":0,"kind":1,"operationID":1,"state":{"urn":"urn:pulumi:dev::test::t:m:T::a","type":"t:m:T"}}`
	rebuilds := ""
	for n := range 20 {
		rebuilds += fmt.Sprintf(`,{"sequenceID":%d,"kind":7}`, 1+n)
	}
	for name, c := range map[string]struct {
		journal string
		version int
	}{
		"a base that is rebuilt without end": {"[" + made + rebuilds + "]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			u := deployments.UpdateName{StackName: testStack, Version: "1"}
			begun(t, h, u)
			head, err := h.store.Head(t.Context(), testStack)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.store.Leases.WriteJournal(t.Context(), deployments.Leased{Update: u, Fence: head.Fence},
				[]byte(c.journal)); err != nil {
				t.Fatal(err)
			}
			end, err := call[deployments.LeaseEnded](h, h.acts.EndLease, deployments.LeaseEnd{Update: u,
				Status: engine.StatusSucceeded})
			if err != nil || end.Status != string(engine.StatusFailed) ||
				!strings.Contains(end.Error, "is not all in the state") {
				t.Errorf("it ends as %+v, %v", end, err)
			}
			if head, err = h.store.Head(t.Context(), testStack); err != nil || head.Active != nil || head.Version != c.version {
				t.Errorf("the head is %+v, %v", head, err)
			}
		})
	}
}

// TestTheEndOfALeaseTakesTheMemoryOfItsWorker has others take what a worker has for the ends of leases.
func TestTheEndOfALeaseTakesTheMemoryOfItsWorker(t *testing.T) {
	h := newHouse(t)
	u := deployments.UpdateName{StackName: testStack, Version: "1"}
	begun(t, h, u)
	writeLarge(t, h, u)
	other := h.acts.leases.Claim("evil", nil)
	if err := other.Take(t.Context(), leaseMemory, 0); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // it waits for longer
	defer cancel()
	if _, err := h.acts.EndLease(gone, deployments.LeaseEnd{Update: u, Status: engine.StatusSucceeded}); err == nil {
		t.Error("it ends without memory")
	}
	other.Release()
	end, err := call[deployments.LeaseEnded](h, h.acts.EndLease, deployments.LeaseEnd{Update: u,
		Status: engine.StatusSucceeded})
	if err != nil || end.Status != string(engine.StatusSucceeded) {
		t.Errorf("it ends as %+v, %v", end, err)
	}
}

// TestAnUpdateThatSettlesTakesTheMemoryOfItsStateBeforeItReadsIt has others take what a worker has for such updates: it
// begins once they are done, and gives back what it has taken at its end.
func TestAnUpdateThatSettlesTakesTheMemoryOfItsStateBeforeItReadsIt(t *testing.T) {
	h := newHouse(t)
	u := deployments.UpdateName{StackName: testStack, Version: "1"}
	begun(t, h, u)
	writeLarge(t, h, u)
	if _, err := call[deployments.LeaseEnded](h, h.acts.EndLease, deployments.LeaseEnd{Update: u,
		Status: engine.StatusFailed}); err != nil {
		t.Fatal(err)
	}
	taken := func() int64 { // all but that is free
		return int64(sort.Search(settledMemory, func(n int) bool {
			other := h.acts.StateMemory.Claim("other", nil)
			defer other.Release()
			return other.Take(t.Context(), settledMemory-int64(n), 0) == nil
		}))
	}
	other := h.acts.StateMemory.Claim("evil", nil)
	if err := other.Take(t.Context(), settledMemory, 0); err != nil {
		t.Fatal(err)
	}
	settling := deployments.ClaimInput{Update: deployments.UpdateName{StackName: testStack, Version: "2"}, Number: 1,
		Request: deployments.UpdateRequest{Stack: testStack, Kind: engine.KindRefresh, Settle: &engine.Settling{},
			Submitted: h.submitted(testStack)}}
	gone, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // it waits for longer
	defer cancel()
	h.background = gone
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, settling); err == nil {
		t.Error("it begins without memory")
	}
	h.background = nil
	other.Release()
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, settling); err != nil {
		t.Fatal(err)
	}
	if n := taken(); n < 4*largeOutput {
		t.Errorf("it has taken %d bytes for a state of %d", n, largeOutput)
	}
	Forget(t.Context(), h.acts, settling.Update)
	if n := taken(); n != 0 {
		t.Errorf("it has %d bytes after its end", n)
	}
}

// largeOutput is how many bytes the output of the resource of writeLarge has.
const largeOutput = 1 << 20

// writeLarge has the client of an update write a large resource.
func writeLarge(t *testing.T, h *house, u deployments.UpdateName) {
	t.Helper()
	head, err := h.store.Head(t.Context(), testStack)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.store.Leases.WriteJournal(t.Context(), deployments.Leased{Update: u, Fence: head.Fence},
		[]byte(`[{"sequenceID":0,"kind":1,"operationID":1,"state":{"urn":"urn:pulumi:dev::test::t:m:T::a","type":"t:m:T",`+
			`"outputs":{"v":"`+strings.Repeat("v", largeOutput)+`"}}}]`)); err != nil {
		t.Fatal(err)
	}
}

// begun begins an update that a client executes.
func begun(t *testing.T, h *house, u deployments.UpdateName) {
	t.Helper()
	request := deployments.UpdateRequest{Stack: testStack, RequestID: "r", Kind: engine.KindUp,
		Lease: &deployments.Lease{}, Submitted: h.submitted(testStack),
		Authority: &deployments.Authority{Grants: [][]deployments.Grant{{{
			Role: deployments.RoleDeployer, Organization: testStack.Organization}}}}}
	if _, err := call[struct{}](h, h.acts.BeginLease, deployments.UpdateInput{Update: u, Request: request}); err != nil {
		t.Fatal(err)
	}
}

// TestALargeStateIsNotSettledByItself has states of which a client has left an operation pending.
func TestALargeStateIsNotSettledByItself(t *testing.T) {
	for _, c := range []struct {
		left statestore.LeftPending
		says string
	}{
		{statestore.LeftPending{Operations: 1, Readable: true, Bytes: largestSettled}, ""},
		{statestore.LeftPending{Operations: 1, Readable: true, Bytes: 2 * largestSettled}, "the state has 96 MiB"},
		{statestore.LeftPending{Operations: 1, Secrets: "passphrase"}, "provider (passphrase)"},
	} {
		if why := unsettled(c.left); !strings.Contains(why, c.says) || (why == "") != (c.says == "") {
			t.Errorf("of %+v it says %q", c.left, why)
		}
	}
}
