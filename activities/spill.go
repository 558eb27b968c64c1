package activities

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
)

// PutAside stores a part of a suspended core.
func (a *Activities) PutAside(ctx context.Context, p deployments.SpilledPart) error {
	return failure.UntilStored(a.Store.Updates.Spill(ctx, p))
}

// TakeUp returns a part that PutAside stored.
func (a *Activities) TakeUp(ctx context.Context, p deployments.SpilledPart) ([]byte, error) {
	data, err := a.Store.Updates.LoadSpilled(ctx, p)
	return data, failure.UntilStored(err)
}
