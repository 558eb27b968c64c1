package keys

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"

	"github.com/deployctl/deployctl/statestore/bucket"
)

// Identity returns the identity of this store, whatever bucket and prefix it is in; a copy has the same. It is created
// with the keys of an empty bucket and never changes; a store from before there were identities has none.
func (s *Store) Identity() string {
	identity, _ := s.identity.Load().(string)
	return identity
}

func newIdentity() string {
	random := make([]byte, 6)
	_, _ = rand.Read(random) // never fails
	return hex.EncodeToString(random)
}

// IsSetUp reports whether the bucket has keys; false only for an empty one, with Options.KeepEmpty.
func (s *Store) IsSetUp() bool { return s.unset.Load() == nil }

// SetUp creates the keys and the identity of an empty bucket, unless another process has done so.
func (s *Store) SetUp(ctx context.Context) error {
	unset := s.unset.Load()
	if unset == nil {
		return nil
	}
	content, err := s.writeFirst(ctx, *unset)
	if err == nil {
		s.useKeyring(content, "")
		s.unset.Store(nil)
	}
	return err
}

// writeFirst writes the first keys of a bucket, and returns the keys that it has then: another process may have been
// faster.
func (s *Store) writeFirst(ctx context.Context, content keyringContent) (keyringContent, error) {
	err := s.writeKeyring(ctx, content, bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		content, _, err = s.readKeyring(ctx)
	}
	return content, err
}
