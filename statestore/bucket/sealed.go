package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/seal"
)

// Sealed reads and writes objects of the service as a whole. What one of them is sealed or has a MAC for is its key, so
// that none counts in the place of another.
type Sealed struct {
	Objects Objects // guarded
	Keys    *seal.Keyring
	// Now is the clock.
	Now func() time.Time
	// Outdated returns why the newest keys of the bucket are not those in use; nil when they are.
	Outdated func() error
}

// PutJSON writes a value as an object of the service as a whole, sealed for its key.
func (s *Sealed) PutJSON(ctx context.Context, key string, v any, c Condition) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write %s: %w", key, err)
	}
	_, err = s.Objects.Put(ctx, key, s.Keys.Box(seal.PurposeStore).Seal(plain, key), c)
	return Failed(err, "write "+key)
}

// GetJSON reads what PutJSON wrote, and returns the object's tag.
func (s *Sealed) GetJSON(ctx context.Context, key string, v any) (tag string, err error) {
	o, err := s.Objects.Get(ctx, key)
	if err != nil {
		return "", Failed(err, "read "+key)
	}
	plain, err := s.Open(s.Keys.Box(seal.PurposeStore), o.Data, key, key)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(plain, v); err != nil {
		return "", Damaged(key, err)
	}
	return o.Tag, nil
}

// Open opens the content of a sealed object. The error, CodeFormat, names the object and says what to do.
func (s *Sealed) Open(box *seal.Box, data []byte, key, context string) ([]byte, error) {
	return s.OpenWithin(box, data, key, context, func(int64) error { return nil })
}

// OpenWithin is Open that asks for room before it makes a value of a size in bytes.
func (s *Sealed) OpenWithin(
	box *seal.Box, data []byte, key, context string, room func(size int64) error,
) ([]byte, error) {
	plain, err := box.OpenWithin(data, context, room)
	if err == nil || Interrupted(err) {
		return plain, err
	}
	next := "put back the last good copy of this object"
	if outdated := s.Outdated(); outdated != nil && errors.Is(err, seal.ErrUnknownKey) {
		next = outdated.Error()
	}
	return nil, &deployments.Error{Code: deployments.CodeFormat, Err: err, Message: key +
		strings.TrimPrefix(err.Error(), context) + "; " + next}
}

// DeleteAll removes every object under a prefix.
func (s *Sealed) DeleteAll(ctx context.Context, prefix string) error {
	l, err := s.Objects.List(ctx, Query{Prefix: prefix})
	if err != nil {
		return Failed(err, "list "+prefix)
	}
	return Each(l.Keys, func(key string) error {
		return Failed(s.Objects.Delete(ctx, key), "delete "+key)
	})
}
