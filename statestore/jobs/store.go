// Package jobs keeps what the service does for stacks besides updates: deployments of programs in git repositories with
// their settings and logs, schedules, webhooks with their deliveries, and what the last drift check has found.
//
// The layout, under the bucket's prefix:
//
//	stacks/ORG/PROJECT/STACK/deployments/{records,logs}/NUMBER…   see Deployment
//	stacks/…/deployments/{settings,hostkeys/DIGEST,deliveries/…}  see Settings and Delivery
//	stacks/…/schedules/NAME                                       see Schedule
//	stacks/…/drift                                                what the last drift check has found
//	stacks/…/webhooks, hooks/ORG/webhooks                         the webhooks of a stack and of an organization
//	…/webhook-deliveries/NAME/INVERSE-EVENT                       what was sent, in the folder of the webhooks
//
// Everything is sealed. All methods may be called concurrently, by any number of processes. Errors are
// *deployments.Error or end with the context.
package jobs

import (
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Store is the typed store of jobs. See the package's description.
type Store struct {
	stacks *stackobjects.Objects
	sealed *bucket.Sealed // of stacks
}

// New returns the store over the objects of stacks.
func New(stacks *stackobjects.Objects) *Store { return &Store{stacks, stacks.Sealed} }
