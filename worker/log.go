package worker

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
)

// closeLog writes the end of an update's event log after its last save.
func closeLog(ctx context.Context, store *statestore.Store, info deployments.UpdateInfo, saves int) error {
	data, err := eventlog.Encode([]deployments.WatchEvent{{End: &info}})
	if err != nil {
		return err
	}
	return store.AppendEvents(ctx, statestore.Part{Update: info.Update, Stream: eventlog.RunStream, Number: saves +
		1}, data)
}

// collected logs what was removed of stacks, and passes it on.
func (c *Connection) collected(
	next func(statestore.Collected),
) func(deployments.StackName, statestore.Collected, error) {
	return func(stack deployments.StackName, removed statestore.Collected, err error) {
		if log := c.config.Log; log != nil && removed != (statestore.Collected{}) {
			log.Info("removed what is not kept any more", "stack", stack.String(), "checkpoints", removed.Checkpoints,
				"updates", removed.Updates, "previews", removed.Previews, "files", removed.Files, "blobs",
				removed.Blobs)
		}
		if log := c.config.Log; log != nil && err != nil {
			log.Warn("What is not kept any more stays for now.", "stack", stack.String(), "error", err)
		}
		if next != nil {
			next(removed)
		}
	}
}
