package statestore

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/identities"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// identity returns the identity of a stack, which is made if it is not there.
func identity(t *testing.T, s *Store, name deployments.StackName) identities.Identity {
	t.Helper()
	if err := s.CreateStack(t.Context(), name, nil); err != nil && deployments.CodeOf(err) != deployments.CodeExists {
		t.Fatal(err)
	}
	i, err := s.Identities.Of(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// service returns a service with a new bucket.
func service(t *testing.T, key byte) *Store {
	t.Helper()
	s, err := New(&bucket.Memory{}, Options{Master: bytes.Repeat([]byte{key}, 32)})
	if err == nil {
		err = s.Check(t.Context())
	}
	if err == nil {
		err = s.Keys.SetUp(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnIdentityOutlivesTheStackAndTheBucketAndNotTheKey(t *testing.T) {
	name := deployments.StackName{Organization: "o", Project: "p", Stack: "dev"}
	s := service(t, 1)
	first := identity(t, s, name)
	same := func(i identities.Identity) bool {
		return bytes.Equal(i.Seeds, first.Seeds) && bytes.Equal(i.Marks, first.Marks) && i.Owner == first.Owner
	}
	if bytes.Equal(first.Seeds, first.Marks) || first.Text != name.String() {
		t.Errorf("it is %q", first.Text)
	}
	if !same(identity(t, service(t, 1), name)) {
		t.Error("a service that has lost its bucket gives it another one")
	}
	if same(identity(t, service(t, 2), name)) {
		t.Error("a service with another key gives it the same")
	}
	if err := s.RemoveStack(t.Context(), name, false); err != nil {
		t.Fatal(err)
	}
	if !same(identity(t, s, name)) {
		t.Error("a stack that is made again has another one")
	}
}

func TestARenameTakesTheIdentityAlong(t *testing.T) {
	name := deployments.StackName{Organization: "o", Project: "p", Stack: "dev"}
	renamed := deployments.StackName{Organization: "o", Project: "p", Stack: "live"}
	s := service(t, 1)
	first := identity(t, s, name)
	if err := s.RenameStack(t.Context(), name, renamed); err != nil {
		t.Fatal(err)
	}
	if now := identity(t, s, renamed); now.Owner != first.Owner || now.Text != name.String() {
		t.Errorf("it is %q", now.Text)
	}
	second := identity(t, s, name)
	if second.Owner == first.Owner || second.Text != "o/p/dev#2" {
		t.Errorf("the next stack of the name has %q", second.Text)
	}
	third := deployments.StackName{Organization: "o", Project: "p", Stack: "third"}
	if err := s.RenameStack(t.Context(), name, third); err != nil {
		t.Fatal(err)
	}
	if next := identity(t, s, name); next.Text != "o/p/dev#3" {
		t.Errorf("the one after it has %q", next.Text)
	}
}

func TestAStackOfAnEarlierReleaseKeepsItsIdentity(t *testing.T) {
	s := newStore(t)
	h, err := s.changeHead(t.Context(), stackName, func(h *Head) (bool, error) {
		h.Identity = ""
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.cacheIdentity(stackName, Head{})
	if i := identity(t, s, stackName); i.Owner != h.ID || i.Text != "" {
		t.Errorf("plugins are told %q", i.Owner)
	}
}

// created returns the deltas with which an update creates a resource.
func created(u urn.URN, op, next int) engine.Delta {
	return engine.Delta{Seq: op, Kind: engine.DeltaPut, Op: op, Next: next, State: &engine.State{
		Key: snapshot.OpKey(op), URN: u, Type: u.Type(), Custom: true, ID: "id" + strconv.Itoa(op)}}
}

// commit plays an update.
func commit(t *testing.T, s *Store, version int, deltas ...engine.Delta) {
	t.Helper()
	u := deployments.UpdateName{StackName: stackName, Version: strconv.Itoa(version)}
	c, err := s.Claim(t.Context(), Claimant{Update: u, Writer: "w", Run: "r"})
	if err == nil {
		_, err = s.Finish(t.Context(), Finish{Scope: Scope{Update: u, Base: c.Base}, Extra: deltas})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestGenerationsAreRememberedOfWhatTheStateDoesNotTell(t *testing.T) {
	s := newStore(t)
	kept, gone := urn.New("dev", "web", "", "a:b:C", "kept"), urn.New("dev", "web", "", "a:b:C", "gone")
	want := func(when string, labels map[urn.URN]int) {
		t.Helper()
		got, err := s.Identities.Generations(t.Context(), stackName)
		if err != nil || len(got) != len(labels) {
			t.Errorf("%s: %v %v", when, got, err)
		}
		for u, n := range labels {
			if got[engine.Label(u)] != n {
				t.Errorf("%s: the next create of %s is %d, not %d", when, u.Name(), got[engine.Label(u)], n)
			}
		}
	}
	commit(t, s, 1, created(kept, 1, 1), created(gone, 2, 1))
	want("of what was created once the state tells enough", nil)
	commit(t, s, 2, engine.Delta{Seq: 1, Kind: engine.DeltaRemove, Removes: []engine.Key{snapshot.BaseKey(1)}})
	want("one is gone", map[urn.URN]int{gone: 1})
	replaced := created(kept, 1, 2)
	replaced.Removes = []engine.Key{snapshot.BaseKey(0)}
	commit(t, s, 3, replaced)
	want("one was replaced", map[urn.URN]int{gone: 1, kept: 2})
	if err := s.RemoveStack(t.Context(), stackName, true); err != nil {
		t.Fatal(err)
	}
	identity(t, s, stackName)
	want("the stack was made again", map[urn.URN]int{gone: 1, kept: 2})
}
