package statestore

import (
	"context"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
)

const spillFolder = "aside"

// Spill stores a part of what an update puts away until it goes on.
func (s *Store) Spill(ctx context.Context, p deployments.SpilledPart) error {
	return s.put(ctx, p.Update.StackName, spilledKey(p), p.Data)
}

// LoadSpilled gives what PutAside has stored.
func (s *Store) LoadSpilled(ctx context.Context, p deployments.SpilledPart) ([]byte, error) {
	return s.get(ctx, p.Update.StackName, spilledKey(p))
}

func spilledKey(p deployments.SpilledPart) string {
	return updateKey(p.Update, spillFolder, p.Name, strconv.Itoa(p.Part))
}
