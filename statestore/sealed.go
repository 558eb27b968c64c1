package statestore

import (
	"context"
	"encoding/json"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/seal"
)

// putSealed writes a value as an object of the service as a whole, sealed for its key.
func (s *Store) putSealed(ctx context.Context, key string, v any, c Condition) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write %s: %w", key, err)
	}
	_, err = s.objects.Put(ctx, key, s.keys.Box(seal.PurposeStore).Seal(plain, key), c)
	return failed(err, "write "+key)
}

// getSealed reads what putSealed wrote, and returns the object's tag.
func (s *Store) getSealed(ctx context.Context, key string, v any) (tag string, err error) {
	o, err := s.objects.Get(ctx, key)
	if err != nil {
		return "", failed(err, "read "+key)
	}
	plain, err := s.unseal(s.keys.Box(seal.PurposeStore), o.Data, key, key)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(plain, v); err != nil {
		return "", damaged(key, err)
	}
	return o.Tag, nil
}
