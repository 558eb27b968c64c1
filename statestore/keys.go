package statestore

import (
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// updateKey returns the key of an update's object.
func updateKey(u deployments.UpdateName, segments ...string) string {
	return stackobjects.Key(u.StackName, append([]string{"updates", u.Version}, segments...)...)
}

// blobKey returns the key of an object that all names of a stack share.
func blobKey(r *stackKeys, segments ...string) string {
	return bucket.Key(append([]string{"blobs", r.ID}, segments...)...)
}
