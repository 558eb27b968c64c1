package updates

import (
	"context"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// SpillFolder is the folder of an update with what of its core was put aside.
const SpillFolder = "aside"

// Spill stores a part of a suspended core.
func (s *Store) Spill(ctx context.Context, p deployments.SpilledPart) error {
	return s.stacks.Put(ctx, p.Update.StackName, spilledKey(p), p.Data)
}

// LoadSpilled returns what Spill has stored.
func (s *Store) LoadSpilled(ctx context.Context, p deployments.SpilledPart) ([]byte, error) {
	data, _, err := s.stacks.Get(ctx, p.Update.StackName, spilledKey(p))
	return data, err
}

func spilledKey(p deployments.SpilledPart) string {
	return stackobjects.UpdateKey(p.Update, SpillFolder, p.Name, strconv.Itoa(p.Part))
}
