package statestore

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// PutDrift stores the result of a drift check, which replaces that of the previous one.
func (s *Store) PutDrift(ctx context.Context, name deployments.StackName, d deployments.Drift) error {
	return s.putJSON(ctx, name, stackKey(name, "drift"), d)
}

// Drift returns the result of the last drift check; CodeNotFound when there was none.
func (s *Store) Drift(ctx context.Context, name deployments.StackName) (deployments.Drift, error) {
	var d deployments.Drift
	err := s.getJSON(ctx, name, stackKey(name, "drift"), &d)
	if errors.Is(err, bucket.ErrAbsent) {
		return d, deployments.Errorf(deployments.CodeNotFound,
			"%s has not been checked for drift yet: schedule a check with `deployctl schedule new drift --every 1h`, "+
				"and run it at once with `deployctl schedule run drift`", name)
	}
	return d, err
}
