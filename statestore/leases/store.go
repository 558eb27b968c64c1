// Package leases keeps what clients write that execute updates themselves: the updates that they have created, their
// journals and events, whole deployments, and why what they wrote was rejected. It makes the tokens of their leases.
//
// The layout, in the folders of updates, besides the objects of every update:
//
//	updates/p-ID/created               the request, from its creation on
//	updates/VERSION/journal/NUMBER     journal entries, in the order of their arrival, and the end of them
//	updates/VERSION/events/client/NUMBER
//	                                   engine events, in the order of their arrival
//	updates/VERSION/snapshot/last      the last whole deployment, with its sequence number
//	updates/VERSION/snapshot/rejected  why what the client wrote is not in the state, or not all of it
//	updates/VERSION/snapshot/changes   how many steps of each kind the client has counted
//
// Everything is sealed. All methods may be called concurrently, by any number of processes. Errors are
// *deployments.Error or end with the context.
package leases

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/journal"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Store is the typed store of leases. See the package's description.
type Store struct {
	stacks    *stackobjects.Objects
	of        Stacks
	logs      clientLogs
	snapshots *lru.Cache[writtenLease, int64] // the sizes of what leases wrote last; see takeSnapshot
}

// Stacks tells what the store of stacks knows.
type Stacks struct {
	// Holds reports, as CodeConflict, that an update has lost its stack since the claim of its lease, which has a fence.
	Holds func(ctx context.Context, u deployments.UpdateName, fence int) error
	// Judge reports, as CodeInvalid, why a whole deployment could not become the state of a stack.
	Judge func(ctx context.Context, name deployments.StackName, deployment []byte) error
	// Checks are those of the entries of journals of a stack.
	Checks func(deployments.StackName) journal.Checks
}

// New returns the store over the objects of stacks. A process has one for a bucket, because it remembers what it wrote.
func New(stacks *stackobjects.Objects, of Stacks) (*Store, error) {
	snapshots, err := lru.New[writtenLease, int64](idleLogs)
	return &Store{stacks: stacks, of: of, snapshots: snapshots,
		logs: clientLogs{queues: map[logOfLease]*logQueue{}}}, err
}
