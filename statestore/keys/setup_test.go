package keys_test

import (
	"context"
	"testing"

	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// away is an object store that answers nothing while it is away.
type away struct {
	bucket.Objects
	is bool
}

func (a *away) Get(ctx context.Context, key string) (bucket.Object, error) {
	if a.is {
		return bucket.Object{}, bucket.ErrTransient
	}
	return a.Objects.Get(ctx, key)
}

func TestAnEmptyBucketThatBecomesUnreachableIsStillNotSetUp(t *testing.T) {
	objects := &away{Objects: &bucket.Memory{}}
	s, err := statestore.New(objects, statestore.Options{Master: storetest.Master, KeepEmpty: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil || s.Keys.IsSetUp() {
		t.Fatalf("it is set up: %t (%v)", s.Keys.IsSetUp(), err)
	}
	objects.is = true
	if err := s.Check(t.Context()); err == nil || s.Keys.IsSetUp() {
		t.Errorf("while it is away it is set up: %t (%v)", s.Keys.IsSetUp(), err)
	}
	objects.is = false
	if err := s.Check(t.Context()); err != nil || s.Keys.IsSetUp() {
		t.Errorf("when it is back it is set up: %t (%v)", s.Keys.IsSetUp(), err)
	}
	if err := s.Keys.SetUp(t.Context()); err != nil || !s.Keys.IsSetUp() || s.Keys.Identity() == "" {
		t.Errorf("after its set-up it is set up: %t (%v)", s.Keys.IsSetUp(), err)
	}
}
