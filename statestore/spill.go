package statestore

import (
	"context"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
)

const spillFolder = "aside"

// Spill stores a part of a suspended core.
func (s *Store) Spill(ctx context.Context, p deployments.SpilledPart) error {
	return s.put(ctx, p.Update.StackName, spilledKey(p), p.Data)
}

// LoadSpilled returns what Spill has stored.
func (s *Store) LoadSpilled(ctx context.Context, p deployments.SpilledPart) ([]byte, error) {
	return s.get(ctx, p.Update.StackName, spilledKey(p))
}

func spilledKey(p deployments.SpilledPart) string {
	return updateKey(p.Update, spillFolder, p.Name, strconv.Itoa(p.Part))
}
