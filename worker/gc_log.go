package worker

import (
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// collected logs what was removed of a stack, and calls the next handler.
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
