package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// requireRevision panics in a worker whose revision cannot continue the update. A replay compares only which commands
// there were, so a worker of another revision could continue from a state that the update was never in. The task fails
// until a compatible worker polls it, or the update is migrated.
func requireRevision(ctx workflow.Context) {
	began, ok := began(ctx)
	if ok && (began < oldestCompatible || began > Revision) {
		panic(fmt.Sprintf("the update was begun by workflows of revision %d; these are of revision %d", began,
			Revision))
	}
}
