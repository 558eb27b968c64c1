package statestore

import (
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// stackKey returns the key of a stack's object, in the folder of the stack.
func stackKey(name deployments.StackName, segments ...string) string {
	return bucket.Key(append([]string{"stacks", name.Organization, name.Project, name.Stack}, segments...)...)
}

// updateKey returns the key of an update's object.
func updateKey(u deployments.UpdateName, segments ...string) string {
	return stackKey(u.StackName, append([]string{"updates", u.Version}, segments...)...)
}

// blobKey returns the key of an object that all names of a stack share.
func blobKey(r *stackKeys, segments ...string) string {
	return bucket.Key(append([]string{"blobs", r.id}, segments...)...)
}

// sealContext returns the context with which a stack's object is sealed: its key without the stack's name, which may
// change.
func sealContext(name deployments.StackName, key string) string {
	return key[len(stackKey(name, "")):]
}
