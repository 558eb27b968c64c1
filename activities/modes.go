package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// longestHold is the longest pause before something that a mode of the service holds up asks again.
const longestHold = 15 * time.Second

// HeldBack says why nothing new begins now; empty if it does.
func HeldBack(ctx context.Context, s interface {
	Mode(ctx context.Context) (deployments.Mode, error)
}) (why string, err error) {
	m, err := s.Mode(ctx)
	return m.Holds(), err
}

// heldBack says why an update does not begin now; empty if it does. One that has the stack already has begun, and ends.
func (a *Activities) heldBack(
	ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest,
) (why string, err error) {
	why, err = HeldBack(ctx, a.Store.Organizations)
	if err != nil || why == "" {
		return why, err
	}
	begun, err := a.hasStack(ctx, u, r)
	if begun {
		why = ""
	}
	return why, err
}
