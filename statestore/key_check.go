package statestore

import (
	"context"
	"errors"
	"strings"
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
		kind := kindOf(key)
		if kind == "" {
			return nil
		}
		err := s.opens(ctx, key)
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

// kindOf returns the kind of a sealed or authenticated object; empty for others.
func kindOf(key string) string {
	if bucket.CheckKey(key) != nil {
		return ""
	}
	folder, _, _ := strings.Cut(key, "/")
	switch {
	case headOf(key) != nil:
		return "heads"
	case sealedKey(key):
		return folder
	}
	return ""
}

// headOf returns the stack of a head's key; nil for other objects.
func headOf(key string) *deployments.StackName {
	parts := strings.Split(key, "/")
	if len(parts) != 5 || parts[0] != "stacks" || parts[4] != "head.json" {
		return nil
	}
	return &deployments.StackName{Organization: parts[1], Project: parts[2], Stack: parts[3]}
}

// opens reports why an object cannot be opened with the service's keys, or why a head's MAC is wrong.
func (s *Store) opens(ctx context.Context, key string) error {
	if name := headOf(key); name != nil {
		_, _, err := s.readHead(ctx, *name)
		return err
	}
	_, err := s.openAny(ctx, key)
	return err
}
