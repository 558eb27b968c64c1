package updates

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// SaveDeltas makes deltas durable as the update's save of this number, from 1. A repeated number must have the same
// deltas.
func (s *Store) SaveDeltas(ctx context.Context, u deployments.UpdateName, number int, deltas []engine.Delta) error {
	return s.stacks.PutJSON(ctx, u.StackName, deltaKey(u, number), deltas)
}

// LoadDeltas returns the deltas of the saves from+1 up to and including to, in order. Each save is stored, also one
// without deltas; CodeFormat when one is missing.
func (s *Store) LoadDeltas(ctx context.Context, u deployments.UpdateName, from, to int) ([]engine.Delta, error) {
	keys := make([]string, 0, to-from)
	index := map[string]int{}
	for n := from + 1; n <= to; n++ {
		index[deltaKey(u, n)] = len(keys)
		keys = append(keys, deltaKey(u, n))
	}
	parts := make([][]engine.Delta, len(keys))
	err := bucket.Each(keys, func(key string) error {
		_, err := s.stacks.GetJSON(ctx, u.StackName, key, &parts[index[key]])
		if errors.Is(err, bucket.ErrAbsent) {
			return s.lostSave(ctx, u, key)
		}
		return err
	})
	var all []engine.Delta
	for _, p := range parts {
		all = append(all, p...)
	}
	return all, err
}

// LastSave returns the number of the update's last save; 0 when there is none. CodeFormat when one before it is
// missing.
func (s *Store) LastSave(ctx context.Context, u deployments.UpdateName) (int, error) {
	prefix := stackobjects.UpdateKey(u, "delta", "")
	l, err := s.stacks.Sealed.Objects.List(ctx, bucket.Query{Prefix: prefix})
	if err != nil || len(l.Keys) == 0 {
		return 0, bucket.Failed(err, "list "+prefix)
	}
	n := 0
	for _, key := range l.Keys {
		number, err := strconv.Atoi(key[len(prefix):])
		if err != nil || key != deltaKey(u, number) {
			continue // a person's copy
		}
		if number > n+1 {
			if err := s.lostSave(ctx, u, deltaKey(u, n+1)); err != nil {
				return 0, err
			}
		}
		n = number
	}
	return n, nil
}

// Saved reports whether an update has saved something, which can be read.
func (s *Store) Saved(ctx context.Context, u deployments.UpdateName) (bool, error) {
	prefix := stackobjects.UpdateKey(u, "delta", "")
	l, err := s.stacks.Sealed.Objects.List(ctx, bucket.Query{Prefix: prefix, Limit: 8})
	if err != nil {
		return false, bucket.Failed(err, "list "+prefix)
	}
	for _, key := range l.Keys {
		var saved []engine.Delta
		_, err := s.stacks.GetJSON(ctx, u.StackName, key, &saved)
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, bucket.ErrAbsent) && bucket.Unreadable(err) == nil:
			return false, err
		}
	}
	return false, nil
}

// lostSave returns the error about a save that is missing, unless an earlier build has begun the update: then it had no
// deltas.
func (s *Store) lostSave(ctx context.Context, u deployments.UpdateName, key string) error {
	every, err := s.of.SavesAll(ctx, u)
	if err == nil && every {
		err = bucket.Damaged(key, errors.New("it is missing, though the update has saved it"))
	}
	return err
}

func deltaKey(u deployments.UpdateName, number int) string {
	return stackobjects.UpdateKey(u, "delta", fmt.Sprintf("%08d", number))
}
