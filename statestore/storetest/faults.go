package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/deployctl/deployctl/statestore"
)

// Fault is a way in which a call goes wrong.
type Fault int

// The faults.
const (
	None Fault = iota
	// Refused: the call fails and has no effect.
	Refused
	// ReplyLost: the call has its effect, and fails.
	ReplyLost
	// Repeated: a client below sends the call again after it lost the reply. A conditional Put then finds its own write, and
	// fails with ErrChanged.
	Repeated
	// Stale: a Get gives what was there before the latest write. No sound store does that; what must stay exclusive must stay
	// so even then.
	Stale
)

// Faulty is an Objects on which calls go wrong. It checks that whoever uses it copes.
type Faulty struct {
	objects statestore.Objects
	choose  func(call, key string) Fault

	mu  sync.Mutex
	old map[string]statestore.Object // what each key held before its latest write
}

// NewFaulty decorates objects. Choose says what happens to a call ("get", "put", "delete" or "list") of a key; it may be
// called concurrently.
func NewFaulty(objects statestore.Objects, choose func(call, key string) Fault) *Faulty {
	return &Faulty{objects: objects, choose: choose, old: map[string]statestore.Object{}}
}

// Randomly makes a chooser of the given faults, each call going wrong with probability p. It is determined by the seed as
// far as the order of the calls is.
func Randomly(seed uint64, p float64, faults ...Fault) func(call, key string) Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, seed))
	return func(string, string) Fault {
		mu.Lock()
		defer mu.Unlock()
		if random.Float64() >= p {
			return None
		}
		return faults[random.IntN(len(faults))]
	}
}

func lost(call, key string) error {
	return fmt.Errorf("%w: %s %s: injected fault", statestore.ErrTransient, call, key)
}

// Get implements statestore.Objects.
func (f *Faulty) Get(ctx context.Context, key string) (statestore.Object, error) {
	switch f.choose("get", key) {
	case Refused, ReplyLost:
		return statestore.Object{}, lost("get", key)
	case Stale:
		f.mu.Lock()
		defer f.mu.Unlock()
		if o, ok := f.old[key]; ok {
			return o, nil
		}
	}
	return f.objects.Get(ctx, key)
}

// Put implements statestore.Objects.
func (f *Faulty) Put(ctx context.Context, key string, data []byte, c statestore.Condition) (string, error) {
	fault := f.choose("put", key)
	if fault == Refused {
		return "", lost("put", key)
	}
	before, missing := f.objects.Get(ctx, key)
	tag, err := f.objects.Put(ctx, key, data, c)
	if err != nil {
		return tag, err
	}
	if missing == nil {
		f.mu.Lock()
		f.old[key] = before
		f.mu.Unlock()
	}
	switch fault {
	case ReplyLost:
		return "", lost("put", key)
	case Repeated:
		return f.objects.Put(ctx, key, data, c)
	}
	return tag, nil
}

// Tag implements statestore.Objects.
func (f *Faulty) Tag(ctx context.Context, key string) (string, error) {
	if fault := f.choose("tag", key); fault == Refused || fault == ReplyLost {
		return "", lost("tag", key)
	}
	return f.objects.Tag(ctx, key)
}

// Delete implements statestore.Objects.
func (f *Faulty) Delete(ctx context.Context, key string) error {
	fault := f.choose("delete", key)
	if fault == Refused {
		return lost("delete", key)
	}
	if err := f.objects.Delete(ctx, key); err != nil {
		return err
	}
	if fault == ReplyLost {
		return lost("delete", key)
	}
	return nil
}

// List implements statestore.Objects.
func (f *Faulty) List(ctx context.Context, q statestore.Query) (statestore.Listing, error) {
	if fault := f.choose("list", q.Prefix); fault == Refused || fault == ReplyLost {
		return statestore.Listing{}, lost("list", q.Prefix)
	}
	return f.objects.List(ctx, q)
}
