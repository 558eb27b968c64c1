package statestore

import (
	"context"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
)

const asideFolder = "aside"

// PutAside stores a part of what an update puts away until it goes on.
func (s *Store) PutAside(ctx context.Context, p deployments.SpilledPart) error {
	return s.put(ctx, p.Update.StackName, asideKey(p), p.Data)
}

// TakeUp gives what PutAside has stored.
func (s *Store) TakeUp(ctx context.Context, p deployments.SpilledPart) ([]byte, error) {
	return s.get(ctx, p.Update.StackName, asideKey(p))
}

func asideKey(p deployments.SpilledPart) string {
	return updateKey(p.Update, asideFolder, p.Name, strconv.Itoa(p.Part))
}
