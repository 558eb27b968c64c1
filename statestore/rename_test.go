package statestore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

var (
	live  = deployments.StackName{Organization: "organization", Project: "site", Stack: "live"}
	spare = deployments.StackName{Organization: "organization", Project: "site", Stack: "spare"}
)

// cut is an object store that is away from the call that it is told of on.
type cut struct{ call, key string }

func (c *cut) choose(call, key string) storetest.Fault {
	if c.call != "" && (c.call == "all" || call == c.call && strings.HasPrefix(key, c.key)) {
		c.call = "all"
		return storetest.Refused
	}
	return storetest.None
}

// off does something that is cut off at a call.
func (c *cut) off(t *testing.T, call, key string, do func() error) {
	t.Helper()
	c.call, c.key = call, key
	if err := do(); err == nil || c.call != "all" {
		t.Fatalf("it was not cut off at the %s of %s: %v", call, key, err)
	}
	c.call = ""
}

// cuttable is a store with the stack dev of one version, whose calls can be cut off.
func cuttable(t *testing.T) (*statestore.Store, *cut) {
	t.Helper()
	c := &cut{}
	s := newStack(t, storetest.NewFaulty(&bucket.Memory{}, c.choose))
	stock := golden(t, "stock.json")
	if _, err := s.Import(t.Context(), statestore.Exchange{Stack: dev, Secrets: provider(t, stock)},
		stock); err != nil {
		t.Fatal(err)
	}
	return s, c
}

func headOf(t *testing.T, s *statestore.Store, name deployments.StackName) statestore.Head {
	t.Helper()
	h, err := s.Head(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func wantGone(t *testing.T, s *statestore.Store, name deployments.StackName) {
	t.Helper()
	if _, err := s.Head(t.Context(), name); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("%s is still there: %v", name, err)
	}
}

// wantStock makes sure that a stack can be updated and has the resources of stock.json.
func wantStock(t *testing.T, s *statestore.Store, name deployments.StackName) {
	t.Helper()
	h := headOf(t, s, name)
	if h.Version == 0 || h.Resources == 0 || h.Active != nil {
		t.Errorf("the head is %+v", h)
	}
	if _, err := s.Export(t.Context(), statestore.Exchange{Stack: name}, 0, false); err != nil {
		t.Error(err)
	}
}

// withPending gives the stack dev a version with a resource and a pending operation, and returns its head.
func withPending(t *testing.T, s *statestore.Store) statestore.Head {
	t.Helper()
	_, err := s.Import(t.Context(), statestore.Exchange{Stack: dev}, apitype.UntypedDeployment{Version: 3,
		Deployment: []byte(`{"resources":[` + cloudProvider + `],"pending_operations":[{"type":"creating","resource":` +
			strings.Replace(unprovidedBucket, `"id":"b-1"`, `"id":""`, 1) + `}]}`)})
	must(t, err)
	h := headOf(t, s, dev)
	if h.Resources == 0 || h.Pending != 1 {
		t.Fatalf("the head is %+v", h)
	}
	return h
}

// another is the store of another process.
func another(t *testing.T, o bucket.Objects) *statestore.Store {
	t.Helper()
	s, err := statestore.New(o, statestore.Options{Master: storetest.Master})
	must(t, err)
	return s
}

func TestARenamedStackHasItsPendingOperations(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	before := withPending(t, s)
	must(t, s.RenameStack(t.Context(), dev, live))
	if h := headOf(t, s, live); h.Pending != before.Pending || h.Resources != before.Resources {
		t.Errorf("it has %d resources and %d pending operations; before it had %d and %d", h.Resources, h.Pending,
			before.Resources, before.Pending)
	}
}

// A head counts what is in the state that it names, also when that was put in place behind the service's back.
func TestAnAdoptedHeadCountsWhatIsInItsState(t *testing.T) {
	for name, damage := range map[string]func(o bucket.Objects, empty, whole []byte){
		"a head that is older": func(o bucket.Objects, head, _ []byte) { put(t, o, devFolder+"head.json", head) },
		"a state that was put back": func(o bucket.Objects, _, whole []byte) {
			put(t, o, devFolder+"checkpoints/2.json.zst", whole)
		},
	} {
		objects := &bucket.Memory{}
		s := newStack(t, objects)
		before := withPending(t, s)
		head, whole := get(t, objects, devFolder+"head.json"), get(t, objects, devFolder+"checkpoints/1.json.zst")
		if name == "a head that is older" {
			withPending(t, s)
		} else {
			_, err := s.Import(t.Context(), statestore.Exchange{Stack: dev}, apitype.UntypedDeployment{Version: 3,
				Deployment: []byte(`{}`)})
			must(t, err)
		}
		damage(objects, head, whole)
		fresh := another(t, objects)
		must(t, fresh.AdoptStack(t.Context(), dev))
		if h := headOf(t, fresh, dev); h.Version != 2 || h.Pending != before.Pending || h.Resources != before.Resources {
			t.Errorf("%s: the head is %+v", name, h)
		}
	}
}

func TestAStackIsNotRenamedToTheNameThatItHas(t *testing.T) {
	s, _ := cuttable(t)
	if err := s.RenameStack(t.Context(), dev, dev); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("got %v", err)
	}
	wantStock(t, s, dev)
}

func TestARenamingThatWasCutOffIsFinishedByDoingItAgain(t *testing.T) {
	for _, at := range []struct{ call, key string }{
		{"put", "stacks/organization/web/dev/head.json"},
		{"get", "removed/"},
		{"put", "stacks/organization/site/live/head.json"},
		{"list", "stacks/organization/web/dev/"},
		{"put", "stacks/organization/site/live/checkpoints/1"},
		{"put", "stacks/organization/site/live/checkpoints/2"},
		{"put", "removed/"},
		{"delete", "stacks/organization/web/dev/checkpoints/"},
		{"delete", "stacks/organization/web/dev/head.json"},
	} {
		t.Run(at.call+" "+at.key, func(t *testing.T) {
			s, c := cuttable(t)
			again := func() error { return s.RenameStack(t.Context(), dev, live) }
			c.off(t, at.call, at.key, again)
			if err := again(); err != nil {
				t.Fatal(err)
			}
			wantGone(t, s, dev)
			wantStock(t, s, live)
		})
	}
}

func TestARepeatedRenameKeepsChangesMadeUnderTheNewName(t *testing.T) {
	s, c := cuttable(t)
	again := func() error { return s.RenameStack(t.Context(), dev, live) }
	c.off(t, "put", "removed/", again)
	u := deployments.UpdateName{StackName: live, Version: "3"}
	claim, err := s.Claim(t.Context(), statestore.Claimant{Update: u, Writer: "w"})
	if err != nil {
		t.Fatal(err)
	}
	before := headOf(t, s, live)
	if err := again(); err != nil {
		t.Fatal(err)
	}
	if h := headOf(t, s, live); h.Nonce != before.Nonce {
		t.Errorf("the head became %+v", h)
	}
	if err := s.Holds(t.Context(), claim); err != nil {
		t.Error(err)
	}
	wantGone(t, s, dev)
}

func TestAStackTakesANameThatARenamingOfItHadNotComeTo(t *testing.T) {
	s, c := cuttable(t)
	c.off(t, "get", "removed/", func() error { return s.RenameStack(t.Context(), dev, live) })
	for _, names := range [][2]deployments.StackName{{dev, spare}, {spare, live}} {
		if err := s.RenameStack(t.Context(), names[0], names[1]); err != nil {
			t.Fatal(err)
		}
		wantGone(t, s, names[0])
		wantStock(t, s, names[1])
	}
}

func TestAStackHasNeverThreeNames(t *testing.T) {
	for _, at := range []struct{ when, call, key string }{
		{"before the state came to the new name", "put", "stacks/organization/site/live/checkpoints/"},
		{"when all was below the new name", "put", "removed/"},
		{"when some was gone from the old name", "delete", "stacks/organization/web/dev/checkpoints/"},
	} {
		t.Run(at.when, func(t *testing.T) {
			s, c := cuttable(t)
			again := func() error { return s.RenameStack(t.Context(), dev, live) }
			c.off(t, at.call, at.key, again)
			for _, from := range []deployments.StackName{dev, live} {
				err := s.RenameStack(t.Context(), from, spare)
				if deployments.CodeOf(err) != deployments.CodeConflict ||
					!strings.Contains(err.Error(), dev.String()) || !strings.Contains(err.Error(), live.String()) {
					t.Errorf("renaming %s to a third name says %v", from, err)
				}
			}
			wantGone(t, s, spare)
			if err := again(); err != nil {
				t.Fatal(err)
			}
			wantGone(t, s, dev)
			if err := s.RenameStack(t.Context(), live, spare); err != nil {
				t.Fatal(err)
			}
			wantGone(t, s, live)
			wantStock(t, s, spare)
		})
	}
}

func TestARenamingThatWasCutOffIsNotUndoneByTheOppositeOne(t *testing.T) {
	s, c := cuttable(t)
	again := func() error { return s.RenameStack(t.Context(), dev, live) }
	c.off(t, "delete", "stacks/organization/web/dev/checkpoints/", again)
	if err := s.RenameStack(t.Context(), live, dev); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("got %v", err)
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
	wantStock(t, s, live)
	if err := s.RenameStack(t.Context(), live, dev); err != nil {
		t.Fatal(err)
	}
	wantStock(t, s, dev)
}

func TestAStackContinuesTheVersionsOfAnEarlierStackOfItsName(t *testing.T) {
	s, c := cuttable(t)
	wantNext := func(name deployments.StackName, next int) {
		t.Helper()
		if h := headOf(t, s, name); h.Next != next {
			t.Errorf("the next version of %s is %d; want %d", name, h.Next, next)
		}
	}
	// Update 7 never had the stack, so its head knows nothing of it.
	if err := s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: deployments.UpdateName{StackName: dev,
		Version: "7"}}); err != nil {
		t.Fatal(err)
	}
	remove := func() error { return s.RemoveStack(t.Context(), dev, true) }
	// the first takes the history with it, the second is the last to go
	for _, key := range []string{"history/", "head.json"} {
		c.off(t, "delete", "stacks/organization/web/dev/"+key, remove)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	wantNext(dev, 8)
	if err := s.RemoveStack(t.Context(), dev, false); err != nil { // which was never updated
		t.Fatal(err)
	}

	if err := s.CreateStack(t.Context(), live, nil); err != nil {
		t.Fatal(err)
	}
	wantNext(live, 1)
	stock := golden(t, "stock.json")
	stock.Deployment = []byte(strings.NewReplacer("urn:pulumi:dev::web::", "urn:pulumi:live::site::", "web-dev",
		"site-live").Replace(string(stock.Deployment)))
	if _, err := s.Import(t.Context(), statestore.Exchange{Stack: live, Secrets: provider(t, stock)},
		stock); err != nil {
		t.Fatal(err)
	}
	if err := s.RenameStack(t.Context(), live, dev); err != nil {
		t.Fatal(err)
	}
	if h := headOf(t, s, dev); h.Version != 8 {
		t.Errorf("the renaming made version %d, which another stack may have had", h.Version)
	}
	wantNext(dev, 9)
	if err := s.CreateStack(t.Context(), live, nil); err != nil {
		t.Fatal(err)
	}
	wantNext(live, 2)
	if err := s.RemoveStack(t.Context(), dev, true); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(fmt.Errorf("made a third time: %w", err))
	}
	wantNext(dev, 9)
}

func TestAStackThatHasOnlyItsOwnResourceIsRemovedWithoutForce(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	for _, c := range []struct {
		states []string
		code   deployments.Code
	}{{[]string{rootState, thingState}, deployments.CodeConflict}, {[]string{thingState}, deployments.CodeConflict},
		{[]string{rootState}, ""}} {
		x := statestore.Exchange{Stack: dev, Forget: true}
		if _, err := s.Import(t.Context(), x, deployment(c.states, nil)); err != nil {
			t.Fatal(err)
		}
		if err := s.RemoveStack(t.Context(), dev, false); deployments.CodeOf(err) != c.code {
			t.Errorf("with %d resources the removal ends with %v", len(c.states), err)
		}
	}
}
