package updates

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// PutDeparture stores what a worker, which has ended, had begun of an update: the last round of each operation whose
// call it has sent.
func (s *Store) PutDeparture(ctx context.Context, u deployments.UpdateName, worker string, begun map[int]int) error {
	return s.stacks.PutJSON(ctx, u.StackName, departureKey(u, worker), begun)
}

// Departure returns what PutDeparture stored; false: the worker has not told what it had begun.
func (s *Store) Departure(
	ctx context.Context, u deployments.UpdateName, worker string,
) (begun map[int]int, told bool, err error) {
	_, err = s.stacks.GetJSON(ctx, u.StackName, departureKey(u, worker), &begun)
	if errors.Is(err, bucket.ErrAbsent) {
		return nil, false, nil
	}
	return begun, err == nil, err
}

// departureKey is among the outcomes, which are kept for as long.
func departureKey(u deployments.UpdateName, worker string) string {
	return stackobjects.UpdateKey(u, "outcome", "begun", worker)
}
