package activities

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
)

// SpillPart stores a part of a suspended core.
func (a *Activities) SpillPart(ctx context.Context, p deployments.SpilledPart) error {
	return failure.UntilStored(a.Store.Updates.Spill(ctx, p))
}

// LoadSpilledPart returns a part that SpillPart stored.
func (a *Activities) LoadSpilledPart(ctx context.Context, p deployments.SpilledPart) ([]byte, error) {
	data, err := a.Store.Updates.LoadSpilled(ctx, p)
	return data, failure.UntilStored(err)
}
