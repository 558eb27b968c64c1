package workflows

import (
	"fmt"
	"strconv"

	"go.temporal.io/sdk/workflow"
)

// belongs keeps a worker of another revision from an update: a replay only compares which commands there were, so it
// could go on from something else than what was done. The task fails until a worker comes that fits, or the update is
// moved.
func belongs(ctx workflow.Context) {
	began, err := strconv.Atoi(workflow.GetInfo(ctx).GetCurrentBuildID())
	if err == nil && (began < since || began > Revision) {
		panic(fmt.Sprintf("the update was begun by workflows of revision %d; these are of revision %d", began,
			Revision))
	}
}
