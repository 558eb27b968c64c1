package jobs_test

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

var dev = deployments.StackName{Organization: "organization", Project: "web", Stack: "dev"}

// newStack opens a store that has the stack dev.
func newStack(t *testing.T, o bucket.Objects) *statestore.Store {
	t.Helper()
	s, err := statestore.New(o, statestore.Options{Master: storetest.Master})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// copyObject has the content of one object in another.
func copyObject(t *testing.T, objects bucket.Objects, from, to string) {
	t.Helper()
	o, err := objects.Get(t.Context(), from)
	if err == nil {
		_, err = objects.Put(t.Context(), to, o.Data, bucket.Condition{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
