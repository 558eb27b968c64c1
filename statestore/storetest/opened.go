package storetest

import (
	"testing"

	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// Open opens a bucket as a process does at its start, with the key Master unless the options say another. Its error is
// that of the start.
func Open(t testing.TB, objects bucket.Objects, o statestore.Options) (*statestore.Store, error) {
	t.Helper()
	if o.Master == nil && o.Keepers == nil {
		o.Master = Master
	}
	s, err := statestore.New(objects, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, s.Check(t.Context())
}

// Opened opens a bucket whose start succeeds.
func Opened(t testing.TB, objects bucket.Objects, o statestore.Options) *statestore.Store {
	t.Helper()
	s, err := Open(t, objects, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Put writes an object as it is, whatever is there.
func Put(t testing.TB, objects bucket.Objects, key string, data []byte) {
	t.Helper()
	if _, err := objects.Put(t.Context(), key, data, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
}

// Get reads an object as it is.
func Get(t testing.TB, objects bucket.Objects, key string) []byte {
	t.Helper()
	o, err := objects.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return o.Data
}
