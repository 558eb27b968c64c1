package monitor

import (
	"context"
	"sync"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// registered is what the monitor keeps of a resource of this epoch. The core keeps more, and decides by it; this copy
// stays beside it because it answers other questions, where the core cannot be asked. Before a registration is sent,
// its child inherits options and providers from it; without another message, dependsOn waits for the resources below a
// component, and a method is called on what served its component. It is made of the same messages: of what was sent,
// and of the reply to it. It never decides what happens to a resource, and a new epoch starts with an empty one, as the
// core does.
type registered struct {
	parent urn.URN
	custom bool
	id     string
	object engine.Bag
	// Its children inherit these.
	protect, retainOnDelete *bool
	deletedWith             urn.URN
	provider                string
	providers               map[string]string // by package; of components
	constructedBy           string            // the provider that serves a component's methods
	transforms              []*pulumirpc.Callback
}

// registry holds the resources that were registered in an epoch. It is safe for concurrent use.
type registry struct {
	mu       sync.Mutex
	changed  *sync.Cond
	byURN    map[urn.URN]registered
	children map[urn.URN][]urn.URN
	open     map[urn.URN]int // registrations without a reply, by parent
}

func newRegistry() *registry {
	r := &registry{byURN: map[urn.URN]registered{}, children: map[urn.URN][]urn.URN{}, open: map[urn.URN]int{}}
	r.changed = sync.NewCond(&r.mu)
	return r
}

func (r *registry) get(u urn.URN) (registered, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	res, ok := r.byURN[u]
	return res, ok
}

func (r *registry) put(u urn.URN, res registered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.byURN[u]; !known {
		r.children[res.parent] = append(r.children[res.parent], u)
	}
	r.byURN[u] = res
	r.changed.Broadcast()
}

func (r *registry) outputs(u urn.URN, object engine.Bag) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if res, ok := r.byURN[u]; ok {
		res.object = object
		r.byURN[u] = res
	}
}

// begin counts a registration below parent as open until the returned function is called.
func (r *registry) begin(parent urn.URN) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[parent]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.open[parent]--; r.open[parent] == 0 {
			delete(r.open, parent)
		}
		r.changed.Broadcast()
	}
}

// allExist reports whether every custom resource among the roots, or below components among them, exists. It waits for
// registrations that are open below those components, or until ctx ends. Resources that this epoch did not register
// count as existing.
func (r *registry) allExist(ctx context.Context, roots []urn.URN) (bool, error) {
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})()
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		var pending *urn.URN // a component with a registration that is open
		visited := map[urn.URN]bool{}
		todo := append([]urn.URN(nil), roots...)
		for len(todo) > 0 {
			u := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			res, ok := r.byURN[u]
			switch {
			case !ok || visited[u]:
			case res.custom && res.id == "":
				return false, nil
			case !res.custom:
				visited[u] = true
				if pending == nil && r.open[u] > 0 {
					pending = &u
				}
				todo = append(todo, r.children[u]...)
			}
		}
		if pending == nil {
			return true, nil
		}
		// All is looked at again when that component has changed: every registration of the program wakes every call that
		// waits here.
		for r.open[*pending] > 0 && ctx.Err() == nil {
			r.changed.Wait()
		}
	}
}
