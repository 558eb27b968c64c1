package jobs

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// PutDrift stores the result of a drift check, which replaces that of the previous one.
func (s *Store) PutDrift(ctx context.Context, name deployments.StackName, d deployments.Drift) error {
	return s.stacks.PutJSON(ctx, name, stackobjects.Key(name, "drift"), d)
}

// Drift returns the result of the last drift check; CodeNotFound when there was none.
func (s *Store) Drift(ctx context.Context, name deployments.StackName) (deployments.Drift, error) {
	var d deployments.Drift
	_, err := s.stacks.GetJSON(ctx, name, stackobjects.Key(name, "drift"), &d)
	if errors.Is(err, bucket.ErrAbsent) {
		return d, deployments.Errorf(deployments.CodeNotFound,
			"%s has not been checked for drift by a schedule yet: `deployctl drift detect` checks it now, and shows what it "+
				"finds; `deployctl schedule new drift --every 1h` has it checked from now on", name)
	}
	return d, err
}
