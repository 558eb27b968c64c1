package keys

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// TestKeysFromBeforeHeadsWereAuthenticatedAreNotTakenAgain puts a keyring back that was written while the heads of a
// bucket were adopted: with it, heads and checkpoints without a MAC would count.
func TestKeysFromBeforeHeadsWereAuthenticatedAreNotTakenAgain(t *testing.T) {
	s, err := New(&bucket.Memory{}, Options{Master: make([]byte, 32)}, Layout{})
	if err == nil {
		err = s.Open(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	content, tag, err := s.readKeyring(t.Context())
	if err != nil || !content.Authenticated {
		t.Fatalf("its keys are %+v, %v", content, err)
	}
	content.Authenticated = false
	if err := s.writeKeyring(t.Context(), content, bucket.Condition{Tag: tag}); err != nil {
		t.Fatal(err)
	}
	older, err := s.objects.Get(t.Context(), ringKey)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if deployments.CodeOf(err) != deployments.CodeFormat || !strings.Contains(err.Error(), "older copy") {
			t.Errorf("%s ends with %v", what, err)
		}
		if !s.authenticated.Load() {
			t.Errorf("after %s a head needs no MAC", what)
		}
	}
	refused("a reload", s.reloadKeyring(t.Context()))
	_, err = s.Rotate(t.Context())
	refused("a rotation", err)

	s.useKeyring(content, "") // as the process that adopts them has it
	if err := s.Authenticate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.ring.Keys().Sealing); n != 2 {
		t.Errorf("the bucket has %d sealing keys once its heads are adopted", n)
	}
	if _, err := s.objects.Put(t.Context(), ringKey, older.Data, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	refused("a reload after the adoption", s.reloadKeyring(t.Context()))
}
