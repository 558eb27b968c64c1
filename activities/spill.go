package activities

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
)

// PutAside stores a part of a suspended core.
func (a *Activities) PutAside(ctx context.Context, p deployments.SpilledPart) error {
	return failureUntilStored(a.Store.Updates.Spill(ctx, p))
}

// TakeUp returns a part that PutAside stored.
func (a *Activities) TakeUp(ctx context.Context, p deployments.SpilledPart) ([]byte, error) {
	data, err := a.Store.Updates.LoadSpilled(ctx, p)
	return data, failureUntilStored(err)
}
