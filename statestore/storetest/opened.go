package storetest

import (
	"testing"

	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// Opened opens a bucket as a process does at its start, with the key Master unless the options say another.
func Opened(t testing.TB, objects bucket.Objects, o statestore.Options) *statestore.Store {
	t.Helper()
	if o.Master == nil && o.Keepers == nil {
		o.Master = Master
	}
	s, err := statestore.New(objects, o)
	if err == nil {
		err = s.Check(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}
