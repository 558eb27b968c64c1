package statestore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Scope says for which update a codec is.
type Scope struct {
	Update deployments.UpdateName
	// Base is the version from which the update starts; 0 when there is none.
	Base    int
	Secrets deployments.SecretsProvider
}

// Bags returns the codec for the bags of one update: it knows the stack's key and its blobs, and finds the states that
// references mean. Make one per update and keep it as long as the update is hosted.
func (s *Store) Bags(ctx context.Context, sc Scope) (*bags.Codec, error) {
	return s.bags(ctx, sc, &results{}, nil)
}

// bags is Bags for who knows deltas of the update already.
func (s *Store) bags(ctx context.Context, sc Scope, own *results, known []engine.Delta) (*bags.Codec, error) {
	r, err := s.stackKeysOf(ctx, sc.Update.StackName)
	if err != nil {
		return nil, err
	}
	c := &bags.Codec{Key: r.digests, Blobs: &blobs{s: s, r: r, update: sc.Update}}
	own.add(known)
	c.Resolve = func(ctx context.Context, ref engine.Ref) (resource.PropertyMap, error) {
		key, _, _ := ref.State()
		if _, made := key.Op(); made {
			bag, err := own.find(ctx, s, sc.Update, ref)
			if err != nil {
				return nil, err
			}
			return c.Decode(ctx, bag)
		}
		base, err := s.Checkpoint(ctx, sc.Update.StackName, sc.Base, sc.Secrets)
		if err != nil {
			return nil, err
		}
		return base.Values(ref)
	}
	return c, nil
}

// results finds the values that an update's own operations returned, in its deltas.
type results struct {
	mu     sync.Mutex
	saves  int // read so far
	states map[engine.Key]engine.State
}

// find returns the bag of a state that an operation of the update made.
func (m *results) find(ctx context.Context, s *Store, u deployments.UpdateName, ref engine.Ref) (engine.Bag, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, part, _ := ref.State()
	if _, ok := m.states[key]; !ok {
		last, err := s.Updates.LastSave(ctx, u)
		if err != nil {
			return engine.Bag{}, err
		}
		deltas, err := s.Updates.LoadDeltas(ctx, u, m.saves, max(last, m.saves))
		if err != nil {
			return engine.Bag{}, err
		}
		m.saves = max(last, m.saves)
		m.add(deltas)
	}
	state, ok := m.states[key]
	if bag := state.Bag(part); ok && bag != nil {
		return *bag, nil
	}
	return engine.Bag{}, deployments.Errorf(deployments.CodeInternal, "update %s has not saved %s", u, ref)
}

func (m *results) add(deltas []engine.Delta) {
	if m.states == nil {
		m.states = map[engine.Key]engine.State{}
	}
	for _, d := range deltas {
		if d.State == nil {
			continue
		}
		state := *d.State
		if _, made := state.Key.Op(); !made {
			continue
		}
		m.states[state.Key] = withPartsOf(state, m.states[state.Key])
	}
}

// Knowing returns a codec that knows deltas which may not be saved yet, besides what another one knows.
func Knowing(c *bags.Codec, deltas []engine.Delta) *bags.Codec {
	states := map[engine.Key]engine.State{}
	for _, d := range deltas {
		if d.State == nil {
			continue
		}
		state := *d.State
		if _, made := state.Key.Op(); !made {
			continue
		}
		if was, again := states[state.Key]; again {
			state = withPartsOf(state, was)
		}
		states[state.Key] = state
	}
	with := &bags.Codec{Key: c.Key, Blobs: c.Blobs}
	with.Resolve = func(ctx context.Context, ref engine.Ref) (resource.PropertyMap, error) {
		key, part, _ := ref.State()
		state, known := states[key]
		if bag := state.Bag(part); known && bag != nil && bag.Ref != ref { // else it is as in a delta that was saved
			return with.Decode(ctx, *bag)
		}
		return c.Resolve(ctx, ref)
	}
	return with
}

// withPartsOf returns a state with those parts of another one of the same operation that are as there.
func withPartsOf(state, was engine.State) engine.State {
	for _, part := range snapshot.Parts {
		if bag := state.Bag(part); bag.Ref == state.Key.Ref(part) {
			*bag = *was.Bag(part)
		}
	}
	return state
}

// blobs stores the large bags of one update. No other update needs them: a checkpoint contains its values.
type blobs struct {
	s      *Store
	r      *stackKeys
	update deployments.UpdateName
	// put has the references that were written: a plan and its step often have the same bag.
	put sync.Map
}

// Put implements bags.BlobStore.
func (b *blobs) Put(ctx context.Context, data []byte) (engine.Ref, error) {
	hash := fmt.Sprintf("%x", b.r.Box.Digest(data))
	if _, ok := b.put.Load(hash); ok {
		return snapshot.BlobRef(hash), nil
	}
	err := b.s.stacks.PutBlob(ctx, b.r.Stack, b.key(hash), data)
	if err == nil {
		b.put.Store(hash, nil)
	}
	return snapshot.BlobRef(hash), err
}

// Get implements bags.BlobStore.
func (b *blobs) Get(ctx context.Context, ref engine.Ref) ([]byte, error) {
	hash, _ := ref.Blob()
	data, err := b.s.stacks.GetBlob(ctx, b.r.Stack, b.key(hash))
	if errors.Is(err, bucket.ErrAbsent) { // the update began when all updates of a stack shared their blobs
		return b.s.stacks.GetBlob(ctx, b.r.Stack, b.r.BlobKey(hash))
	}
	return data, err
}

func (b *blobs) key(hash string) string { return stackobjects.UpdateKey(b.update, blobFolder, hash) }

// blobFolder is the folder of an update's large bags.
const blobFolder = "blob"
