package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

func claims(t *testing.T, f fixture) {
	f.create(t)
	first := f.claim(t, 1, "w1")
	first.Next = 0 // only the first claim knows it
	if again := f.claim(t, 1, "w1"); again != first {
		t.Errorf("the same writer got %+v and %+v", first, again)
	}
	_, err := f.Claim(t.Context(), statestore.Claimant{Update: up(2), Writer: "w2"})
	wantCode(t, err, deployments.CodeConflict)
	h, err := f.Head(t.Context(), dev)
	ok(t, err)
	if h.Next != 2 || h.Active == nil || h.Active.Version != "1" || h.Contract(dev).Active.String() != up(1).String() {
		t.Errorf("got %+v", h)
	}
	ok(t, f.Commit(t.Context(), first, statestore.Written{Version: 1, Digest: "d", Resources: 3}))
	_, err = f.Claim(t.Context(), statestore.Claimant{Update: up(1), Writer: "w3"})
	wantCode(t, err, deployments.CodeConflict)
	alone := statestore.Claimant{Update: up(2), Writer: "w4", Unclaimed: true}
	second := f.claim(t, 2, "w3")
	_, err = f.Claim(t.Context(), alone)
	wantCode(t, err, deployments.CodeConflict)
	ok(t, f.Commit(t.Context(), second, statestore.Written{}))
	_, err = f.Claim(t.Context(), alone)
	wantCode(t, err, deployments.CodeConflict)
	if h, err = f.Head(t.Context(), dev); err != nil || h.Next != 3 || h.Version != 1 || h.Active != nil {
		t.Errorf("got %+v, %v", h, err)
	}
	_, err = f.Claim(t.Context(), statestore.Claimant{Update: deployments.UpdateName{StackName: dev, Version: "pX"},
		Writer: "w"})
	wantCode(t, err, deployments.CodeInvalid)
}

func claimsOnce(t *testing.T, f fixture) {
	f.create(t)
	h, err := f.Head(t.Context(), dev)
	ok(t, err)
	by := func(n int, run, request, stack string) statestore.Claimant {
		return statestore.Claimant{Update: up(n), Run: run, RequestID: request, StackID: stack, Writer: "w-" + run}
	}
	refused := func(what string, c statestore.Claimant) {
		t.Helper()
		if _, err := f.Claim(t.Context(), c); deployments.CodeOf(err) != deployments.CodeConflict {
			t.Errorf("%s claims the stack: %v", what, err)
		}
	}
	refused("an update of another stack of the name", by(1, "first", "one", "another"))
	c, err := f.Claim(t.Context(), by(3, "first", "one", h.ID))
	ok(t, err)
	refused("a second run of its workflow", by(3, "second", "one", h.ID))
	ok(t, f.Commit(t.Context(), c, statestore.Written{}))
	refused("an update that has lost the stack", by(3, "first", "one", h.ID))
	refused("a version that was passed over", by(2, "other", "two", h.ID))
	refused("a request that was an update", by(4, "other", "one", h.ID))
	c, err = f.Claim(t.Context(), by(4, "other", "two", h.ID))
	ok(t, err)
	ok(t, f.Commit(t.Context(), c, statestore.Written{}))
	ok(t, f.RemoveStack(t.Context(), dev, false))
	f.create(t)
	again, err := f.Head(t.Context(), dev)
	ok(t, err)
	for n := range 4 { // whatever they say
		refused("an update of the removed stack", by(n+1, "first", fmt.Sprint("again ", n), again.ID))
	}
	_, err = f.Claim(t.Context(), by(5, "third", "one", again.ID))
	ok(t, err)
}

func fencing(t *testing.T, f fixture) {
	f.create(t)
	first := f.claim(t, 1, "w1")
	second := f.claim(t, 1, "w2")
	if second.Fence <= first.Fence {
		t.Fatalf("fences %d and %d", first.Fence, second.Fence)
	}
	wantCode(t, f.Commit(t.Context(), first, statestore.Written{Version: 1, Digest: "first"}), deployments.CodeConflict)
	wantCode(t, f.Holds(t.Context(), first), deployments.CodeConflict)
	ok(t, f.Holds(t.Context(), second))
	ok(t, f.Commit(t.Context(), second, statestore.Written{Version: 1, Digest: "second"}))
	wantCode(t, f.Commit(t.Context(), first, statestore.Written{Version: 1, Digest: "first"}), deployments.CodeConflict)
	if h, err := f.Head(t.Context(), dev); err != nil || h.Digest != "second" {
		t.Fatalf("got %+v, %v", h, err)
	}
}

func raceClaims(t *testing.T, f fixture) {
	f.create(t)
	won := make(chan statestore.Claim, 12)
	var wg sync.WaitGroup
	for i := 1; i <= cap(won); i++ {
		wg.Go(func() {
			c, err := f.Claim(t.Context(), statestore.Claimant{Update: up(i), Writer: fmt.Sprint("w", i)})
			switch {
			case err == nil:
				won <- c
			case deployments.CodeOf(err) != deployments.CodeConflict:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(won)
	var winners []statestore.Claim
	for c := range won {
		winners = append(winners, c)
	}
	if len(winners) != 1 {
		t.Fatalf("%+v have the stack", winners)
	}
	ok(t, f.Holds(t.Context(), winners[0]))
}

func settleTwice(t *testing.T, f fixture) {
	f.create(t)
	c := f.claim(t, 1, "w")
	w := statestore.Written{Version: 1, Digest: "d", Resources: 3}
	ok(t, f.Commit(t.Context(), c, w))
	f.claim(t, 2, "w")
	ok(t, f.Commit(t.Context(), c, w))
	h, err := f.Head(t.Context(), dev)
	ok(t, err)
	if h.Version != 1 || h.Active == nil || h.Active.Version != "2" {
		t.Fatalf("got %+v", h)
	}
}
