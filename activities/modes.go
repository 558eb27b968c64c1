package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// longestHold is the longest pause before something that a mode of the service holds up asks again.
const longestHold = 15 * time.Second

// heldBack says why an update does not begin now; empty if it does. One that has the stack already has begun, and ends.
func (a *Activities) heldBack(
	ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest,
) (why string, err error) {
	mode, err := a.Store.Organizations.Mode(ctx)
	if why = mode.Holds(); err != nil || why == "" {
		return why, err
	}
	begun, err := a.hasStack(ctx, u, r)
	if begun {
		why = ""
	}
	return why, err
}
