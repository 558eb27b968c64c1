package statestore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// identityOf returns the id of a stack and its identity, from the cache or from its head.
func (s *Store) identityOf(ctx context.Context, name deployments.StackName) (id, text string, err error) {
	if k, ok := s.knownIdentity(ctx, name); ok {
		return k.id, k.identity, nil
	}
	h, _, err := s.readHead(ctx, name)
	return h.ID, h.Identity, err
}

// knownIdentity returns the identity of a stack as it was identityCacheTime ago at the earliest. If its head is being
// read, it waits for that: a client's first calls come together.
func (s *Store) knownIdentity(ctx context.Context, name deployments.StackName) (cachedIdentity, bool) {
	for waited := false; ; waited = true {
		s.mu.Lock()
		k, ok := s.names[name.String()]
		s.mu.Unlock()
		if ok && time.Since(k.read) < identityCacheTime {
			return k, true
		}
		read := s.headReads.underWay(name)
		if read == nil || waited {
			return k, false
		}
		select {
		case <-read:
		case <-ctx.Done():
			return k, false
		}
	}
}

// headReads are the heads that are being read.
type headReads struct {
	mu  sync.Mutex
	all map[deployments.StackName]chan struct{}
}

// begin notes that a head is being read, until end is called, which may be called more than once.
func (r *headReads) begin(name deployments.StackName) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[deployments.StackName]chan struct{}{}
	}
	if r.all[name] != nil {
		return func() {} // another one is
	}
	read := make(chan struct{})
	r.all[name] = read
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.all, name)
		close(read)
	})
}

// underWay returns what is closed once the head is read that is being read; nil if none is.
func (r *headReads) underWay(name deployments.StackName) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[name]
}

// firstIdentity returns the identity of a new stack.
func (t tombstone) firstIdentity(name deployments.StackName) string {
	text := name.String()
	for n := 2; slices.Contains(t.Moved, text); n++ {
		text = fmt.Sprintf("%s#%d", name, n)
	}
	return text
}

// noteGenerations remembers the creates of an update that the state does not tell.
func (s *Store) noteGenerations(ctx context.Context, name deployments.StackName, d *draft) error {
	return s.Identities.Raise(ctx, name, d.generations())
}

// generations returns the generations of the next creates, as far as the update of a draft tells them: of what it has
// created more than once, and of what is gone.
func (d *draft) generations() map[string]int {
	live := map[urn.URN]bool{}
	for _, state := range d.states {
		live[state.URN] = live[state.URN] || !state.Delete && !state.External
	}
	raise := map[string]int{}
	for u, next := range d.next {
		if next > 1 || !live[u] {
			raise[engine.Label(u)] = next
		}
	}
	for _, state := range d.base.States() {
		if label := engine.Label(state.URN); state.Custom && !state.External && !live[state.URN] && raise[label] == 0 {
			raise[label] = 1
		}
	}
	return raise
}
