package statestore

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// A stack has an identity, from which the names of its resources and their marks of ownership are derived with a key of
// the service. It outlives the stack: one that is made again under the name has the identity of the former, so that it
// knows again what is that one's (docs/adr/0061). It is the stack's first name, which a rename keeps; a stack that gets
// a name which another one has left by a rename has the next identity, NAME#2.

// StackIdentity is what is derived from a stack's identity. The keys are of this purpose alone, and never shown.
type StackIdentity struct {
	// Text is the identity itself; empty for a stack of an earlier release, whose other fields are derived from its id.
	Text string
	// Seeds and Marks are keys: the engine derives the seeds of creates from the one, and marks of creates from the other.
	Seeds, Marks []byte
	// Owner is what provider plugins get as Identity.StackID.
	Owner string
}

// identityFolder has an object for each identity of which something is remembered.
const identityFolder = "identities/"

// ownerPrefix begins StackIdentity.Owner; see provider.Identity.Owner.
const ownerPrefix = "identity-"

// StackIdentity returns the identity of a stack, which may be cached; CodeNotFound when there is no such stack.
func (s *Store) StackIdentity(ctx context.Context, name deployments.StackName) (StackIdentity, error) {
	id, text, err := s.identityOf(ctx, name)
	if err != nil {
		return StackIdentity{}, err
	}
	of := identified(id, text)
	i := StackIdentity{Text: text, Seeds: s.fromIdentity("seeds", of), Marks: s.fromIdentity("marks", of), Owner: id}
	if text != "" {
		i.Owner = ownerPrefix + hex.EncodeToString(s.fromIdentity("owner", of)[:16])
	}
	return i, nil
}

// identified is the text from which everything of a stack's identity is derived.
func identified(id, text string) string {
	if text == "" {
		return "id " + id
	}
	return "name " + text
}

func (s *Store) fromIdentity(purpose, of string) []byte {
	sum := hmac.New(sha256.New, s.keys.Key("identity"))
	_, _ = sum.Write([]byte(purpose + "\x00" + of))
	return sum.Sum(nil)
}

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

// lastCreate is what is remembered of the creates of a resource that the stack does not have any more, or has replaced.
type lastCreate struct {
	Next int   `json:"next"`          // the generation of the next create
	Day  int64 `json:"day,omitempty"` // when it was noted, in days since 1970
}

// keptGenerations is how many resources are remembered; the oldest are forgotten first. One that is forgotten would get
// its first name again.
const keptGenerations = 5000

func (s *Store) generationsKey(id, text string) string {
	return identityFolder + hex.EncodeToString(s.fromIdentity("name", identified(id, text))[:16])
}

// Generations returns the generation of the next create of each resource, by engine.Label, where it is not the first,
// nor the second of what the stack has.
func (s *Store) Generations(ctx context.Context, name deployments.StackName) (map[string]int, error) {
	id, text, err := s.identityOf(ctx, name)
	if err != nil {
		return nil, err
	}
	known, _, err := s.readGenerations(ctx, s.generationsKey(id, text))
	next := map[string]int{}
	for label, last := range known {
		next[label] = last.Next
	}
	return next, err
}

func (s *Store) readGenerations(ctx context.Context, key string) (map[string]lastCreate, bucket.Condition, error) {
	known := map[string]lastCreate{}
	tag, err := s.sealed.GetJSON(ctx, key, &known)
	if errors.Is(err, bucket.ErrAbsent) {
		return known, bucket.Condition{Absent: true}, nil
	}
	return known, bucket.Condition{Tag: tag}, err
}

// noteGenerations remembers the creates of an update that the state does not tell. Numbers only grow, so it does not
// matter whether the update is committed.
func (s *Store) noteGenerations(ctx context.Context, name deployments.StackName, d *draft) error {
	raise := d.generations()
	if len(raise) == 0 {
		return nil
	}
	id, text, err := s.identityOf(ctx, name)
	if err != nil {
		return err
	}
	key := s.generationsKey(id, text)
	for {
		known, unchanged, err := s.readGenerations(ctx, key)
		if err != nil {
			return err
		}
		if !s.raise(known, raise) {
			return nil
		}
		if err = s.sealed.PutJSON(ctx, key, known, unchanged); !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
}

// raise raises generations, and reports whether one has changed.
func (s *Store) raise(known map[string]lastCreate, to map[string]int) (changed bool) {
	today := s.now().Unix() / int64(24*time.Hour/time.Second)
	for label, next := range to {
		if known[label].Next < next {
			known[label], changed = lastCreate{next, today}, true
		}
	}
	if over := len(known) - keptGenerations; over > 0 {
		oldest := slices.SortedFunc(maps.Keys(known), func(a, b string) int { return int(known[a].Day - known[b].Day) })
		for _, label := range oldest[:over] {
			delete(known, label)
		}
	}
	return changed
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
