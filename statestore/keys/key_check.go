package keys

import (
	"context"
	"errors"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// proof is the result of opening objects of one kind.
type proof struct {
	opened  bool
	key     string // of an object that cannot be opened
	unknown bool   // it names a key that this process does not have
}

// opensAll reports, as CodeInvalid, that the service's keys are not those of the bucket: an object names another key,
// or no object of a kind (heads, tokens, stacks' objects and so on) can be opened. Single damaged objects do not count.
func (s *Store) opensAll(ctx context.Context) error {
	l, err := s.objects.List(ctx, bucket.Query{})
	if err != nil {
		return bucket.Failed(err, "list the bucket")
	}
	var mu sync.Mutex
	kinds := map[string]*proof{}
	err = bucket.Each(l.Keys, func(key string) error {
		kind := s.layout.Kind(key)
		if kind == "" {
			return nil
		}
		err := s.layout.Open(ctx, key)
		if err != nil && bucket.Unreadable(err) == nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		p := kinds[kind]
		if p == nil {
			p = &proof{}
			kinds[kind] = p
		}
		if err == nil {
			p.opened = true
		} else if unknown := errors.Is(err, seal.ErrUnknownKey); p.key == "" || unknown && !p.unknown {
			p.key, p.unknown = key, unknown
		}
		return nil
	})
	for _, p := range kinds {
		if err == nil && p.key != "" && (p.unknown || !p.opened) {
			err = deployments.Errorf(deployments.CodeInvalid, "the bucket is not taken over, and nothing in it was "+
				"changed: %s cannot be opened with this service's key; "+
				"put %s back from a copy of the bucket, or an earlier version of it, or give the key that the bucket "+
				"is sealed with", p.key, ringKey)
		}
	}
	return err
}
