package statestore

import (
	"context"
	"sync"
)

// recentBytes bounds what recent keeps.
const recentBytes = 32 << 20

// recent keeps the checkpoints that this process wrote last, as they are stored: the update after one begins with
// reading it. A person may put another in its place, so each is good only as long as its tag is.
type recent struct {
	mu      sync.Mutex
	objects map[string]Object
	order   []string // oldest first
	bytes   int
}

func (r *recent) keep(key string, o Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.objects[key]; ok {
		r.bytes -= len(old.Data)
	} else {
		r.order = append(r.order, key)
	}
	if r.objects == nil {
		r.objects = map[string]Object{}
	}
	r.objects[key] = o
	for r.bytes += len(o.Data); r.bytes > recentBytes; r.order = r.order[1:] {
		r.bytes -= len(r.objects[r.order[0]].Data)
		delete(r.objects, r.order[0])
	}
}

// get gives an object of the store, from here if it is still the same.
func (r *recent) get(ctx context.Context, objects Objects, key string) (Object, error) {
	r.mu.Lock()
	kept, ok := r.objects[key]
	r.mu.Unlock()
	if ok {
		if tag, err := objects.Tag(ctx, key); err != nil || tag == kept.Tag {
			return kept, err
		}
	}
	return objects.Get(ctx, key)
}
