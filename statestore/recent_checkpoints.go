package statestore

import (
	"context"
	"github.com/deployctl/deployctl/statestore/bucket"
	"sync"
)

// recentBytes limits the size of recent.
const recentBytes = 32 << 20

// recent caches the checkpoints that this process wrote last, as they are stored: the next update begins with reading
// one. A person may replace the stored object, so an entry is used only if its tag is unchanged.
type recent struct {
	mu      sync.Mutex
	objects map[string]bucket.Object
	order   []string // oldest first
	bytes   int
}

func (r *recent) keep(key string, o bucket.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.objects[key]; ok {
		r.bytes -= len(old.Data)
	} else {
		r.order = append(r.order, key)
	}
	if r.objects == nil {
		r.objects = map[string]bucket.Object{}
	}
	r.objects[key] = o
	for r.bytes += len(o.Data); r.bytes > recentBytes; r.order = r.order[1:] {
		r.bytes -= len(r.objects[r.order[0]].Data)
		delete(r.objects, r.order[0])
	}
}

// get returns an object of the store, from the cache if its tag is unchanged.
func (r *recent) get(ctx context.Context, objects bucket.Objects, key string) (bucket.Object, error) {
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
