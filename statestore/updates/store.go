// Package updates keeps what is said and known of updates: their requests and descriptions, which are the history of a
// stack, what they have saved, their event logs, the outcomes of their steps, and parts of suspended cores.
//
// The layout, under the bucket's prefix:
//
//	stacks/ORG/PROJECT/STACK/updates/ID/{update,info,delta/N,events/STREAM/N,outcome/OP.ROUND,aside/NAME/PART}
//	stacks/…/history/INVERSE    one per numbered update; the newest sorts first
//
// Everything is sealed. All methods may be called concurrently, by any number of processes. Errors are
// *deployments.Error or end with the context.
package updates

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Store is the typed store of updates. See the package's description.
type Store struct {
	stacks *stackobjects.Objects
	of     Stacks
}

// Stacks tells what the store of stacks knows.
type Stacks struct {
	// Kept returns the versions of a stack whose states are kept; CodeNotFound when there is no such stack.
	Kept func(context.Context, deployments.StackName) ([]int, error)
	// SavesAll reports whether each save of an update is stored; earlier builds left out those without deltas.
	SavesAll func(context.Context, deployments.UpdateName) (bool, error)
}

// New returns the store over the objects of stacks.
func New(stacks *stackobjects.Objects, of Stacks) *Store { return &Store{stacks, of} }
