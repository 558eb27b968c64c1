package organizations_test

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

var dev = deployments.StackName{Organization: "organization", Project: "web", Stack: "dev"}

func put(t *testing.T, objects bucket.Objects, key string, data []byte) {
	t.Helper()
	if _, err := objects.Put(t.Context(), key, data, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, objects bucket.Objects, key string) []byte {
	t.Helper()
	o, err := objects.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return o.Data
}
