package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/deployctl/deployctl/statestore/bucket"
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
	// Repeated: a client below sends the call again after it lost the reply. A conditional Put then finds its own
	// write, and fails with ErrChanged.
	Repeated
	// TimedOut: the call does not come to an end in time, and has no effect.
	TimedOut
	// ReplyTimedOut: the call does not come to an end in time, and has its effect.
	ReplyTimedOut
	// Late: a Put by tag fails, and is carried out behind the back of a later call. Until then reads do not show it,
	// which they need not: it was not answered. Of Puts without a tag a server takes the one that it received last, so
	// a late one comes to nothing; they are ReplyLost instead.
	Late
	// Stale: a Get gives what was there before the latest write. No sound store does that; what must stay exclusive
	// must stay so even then.
	Stale
)

// Sound are the faults that Objects allows. That a store answers 409 after one's own write is ReplyLost, 412 is
// Repeated.
var Sound = []Fault{Refused, ReplyLost, Repeated, TimedOut, ReplyTimedOut, Late}

// Faulty is an Objects on which calls go wrong. It checks that whoever uses it copes.
type Faulty struct {
	objects bucket.Objects
	choose  func(call, key string) Fault

	mu   sync.Mutex
	old  map[string]bucket.Object // what each key held before its latest write
	late []func()                 // Puts that are still to be carried out
}

// NewFaulty decorates objects. Choose says what happens to a call ("get", "put", "tag", "delete" or "list") of a key;
// it may be called concurrently.
func NewFaulty(objects bucket.Objects, choose func(call, key string) Fault) *Faulty {
	return &Faulty{objects: objects, choose: choose, old: map[string]bucket.Object{}}
}

// Randomly makes a chooser of the given faults, each call going wrong with probability p. It is determined by the seed
// as far as the order of the calls is.
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

// before gives the error of a call that fails before its effect, if it does. Calls that are late come first.
func (f *Faulty) before(call, key string) (Fault, error) {
	fault := f.choose(call, key)
	f.mu.Lock()
	due := f.late
	f.late = nil
	f.mu.Unlock()
	for _, put := range due {
		put()
	}
	switch fault {
	case Refused:
		return fault, lost(call, key)
	case TimedOut:
		return fault, late(call, key)
	}
	return fault, nil
}

// after gives the error of a call that fails after its effect, if it does.
func after(fault Fault, call, key string) error {
	switch fault {
	case ReplyLost, Late:
		return lost(call, key)
	case ReplyTimedOut:
		return late(call, key)
	}
	return nil
}

func lost(call, key string) error {
	return fmt.Errorf("%w: %s %s: injected fault", bucket.ErrTransient, call, key)
}

func late(call, key string) error {
	return fmt.Errorf("%s %s: injected fault: %w", call, key, context.DeadlineExceeded)
}

// Get implements statestore.Objects.
func (f *Faulty) Get(ctx context.Context, key string) (bucket.Object, error) {
	fault, err := f.before("get", key)
	if err != nil {
		return bucket.Object{}, err
	}
	if fault == Stale {
		f.mu.Lock()
		defer f.mu.Unlock()
		if o, ok := f.old[key]; ok {
			return o, nil
		}
	}
	o, err := f.objects.Get(ctx, key)
	if lost := after(fault, "get", key); lost != nil {
		return bucket.Object{}, lost
	}
	return o, err
}

// Put implements statestore.Objects.
func (f *Faulty) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	fault, err := f.before("put", key)
	if err != nil {
		return "", err
	}
	if fault == Late && c.Tag != "" {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.late = append(f.late, func() { _, _ = f.objects.Put(context.WithoutCancel(ctx), key, data, c) })
		return "", lost("put", key)
	}
	was, missing := f.objects.Get(ctx, key)
	tag, err := f.objects.Put(ctx, key, data, c)
	if err != nil {
		return tag, err
	}
	if missing == nil {
		f.mu.Lock()
		f.old[key] = was
		f.mu.Unlock()
	}
	if fault == Repeated {
		return f.objects.Put(ctx, key, data, c)
	}
	if err := after(fault, "put", key); err != nil {
		return "", err
	}
	return tag, nil
}

// Tag implements statestore.Objects.
func (f *Faulty) Tag(ctx context.Context, key string) (string, error) {
	fault, err := f.before("tag", key)
	if err == nil {
		err = after(fault, "tag", key)
	}
	if err != nil {
		return "", err
	}
	return f.objects.Tag(ctx, key)
}

// Delete implements statestore.Objects.
func (f *Faulty) Delete(ctx context.Context, key string) error {
	fault, err := f.before("delete", key)
	if err != nil {
		return err
	}
	if err := f.objects.Delete(ctx, key); err != nil {
		return err
	}
	return after(fault, "delete", key)
}

// List implements statestore.Objects.
func (f *Faulty) List(ctx context.Context, q bucket.Query) (bucket.Listing, error) {
	fault, err := f.before("list", q.Prefix)
	if err == nil {
		err = after(fault, "list", q.Prefix)
	}
	if err != nil {
		return bucket.Listing{}, err
	}
	return f.objects.List(ctx, q)
}
