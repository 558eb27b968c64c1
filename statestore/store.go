// Package statestore keeps everything that outlives an update: stacks, checkpoints, deltas, event logs, outcomes,
// history, project bundles and access tokens, in an object store such as an S3 bucket.
//
// The layout, under the bucket's prefix:
//
//	stacks/ORG/PROJECT/STACK/head.json                 where the stack stands; changed by compare-and-swap only
//	stacks/…/checkpoints/VERSION.json.zst              immutable, Pulumi deployment JSON, secrets as ciphertexts
//	stacks/…/updates/ID/{update,delta/N,events/STREAM/N,outcome/OP.ROUND,aside/NAME/PART,blob/HASH}
//	stacks/…/history/INVERSE                           one per numbered update; the newest sorts first
//	blobs/STACK-ID/files/MONTH/HASH                    project files and manifests of one stack
//	removed/ORG/PROJECT/STACK.json                     the next version of a name that a stack had
//	tokens/NAME                                        access tokens, hashed
//	keys/ring.json                                     the service's keys and the store's identity, wrapped by its
//	                                                   master key or a key management service
//	members/NAME                                       who has tokens, and what they may do
//	audit/ORG/DAY/TIME-ID                              what was asked of the service
//	organizations/ORG                                  empty; the organization has workers of its own
//
// Everything is sealed but heads, checkpoints and what stands under removed/ and organizations/ (docs/adr/0002): a
// person must be able to read and repair those without the service, and nothing secret is readable in them.
//
// All methods may be called concurrently, by any number of processes. Errors are *deployments.Error or end with the
// context.
package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/seal"
)

// Options of a Store.
type Options struct {
	// Master is the service's master key, 32 bytes. Whatever was stored with another one cannot be read.
	Master []byte
	// Keepers wrap the service's keys, in the place of Master: the first is the service's, others are those that it had
	// before.
	Keepers []seal.Keeper
	// Adopt: a bucket that was written before there were keys in it, and its heads, are taken over. See Store.Check.
	Adopt bool
	// KeepEmpty: Check leaves an empty bucket as it is; SetUp makes its keys.
	KeepEmpty bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Store is the typed store. See the package's description.
type Store struct {
	objects Objects
	keys    *seal.Keyring
	keepers []seal.Keeper
	adopt   bool
	keep    bool // see Options.KeepEmpty
	now     func() time.Time
	// authenticated: a head without a MAC is not the service's.
	authenticated atomic.Bool
	identity      atomic.Value // string; see Identity
	// unset are the keys that SetUp gives the bucket, which is empty; nil when it has keys.
	unset atomic.Pointer[keyringContent]

	mu         sync.Mutex
	stackKeys  map[string]*stackKeys     // by stack id
	names      map[string]cachedIdentity // by stack name
	cache      map[string]*cacheEntry    // by stack id and version
	cacheOrder []string                  // of opened, oldest first
	recent     recent

	callers callers
	// outdated is why the newest keys of the bucket cannot be read, if they cannot.
	outdated   atomic.Pointer[error]
	keyringTag atomic.Value // string: the tag of the keys that are in use
}

// cachedIdentity is a stack's identity, and the digests of its checkpoints, as last read.
type cachedIdentity struct {
	id      string
	digests map[string]string
	read    time.Time
}

// identityCacheTime is how long a stack's identity is taken for granted. It changes only when a stack is removed and another one
// gets its name.
const identityCacheTime = 5 * time.Second

// New makes a Store over objects, which should retry (see Retry).
func New(objects Objects, o Options) (*Store, error) {
	keys := &seal.Keyring{}
	if len(o.Keepers) == 0 {
		var err error
		if keys, err = seal.NewKeyring(o.Master); err != nil {
			return nil, err
		}
		master, err := seal.NewMasterKeeper(o.Master)
		if err != nil {
			return nil, err
		}
		o.Keepers = []seal.Keeper{master}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{
		objects: guarded{objects}, keys: keys, keepers: o.Keepers, adopt: o.Adopt, keep: o.KeepEmpty, now: o.Now,
		stackKeys: map[string]*stackKeys{}, names: map[string]cachedIdentity{},
		cache: map[string]*cacheEntry{},
	}, nil
}

// Check reports why the object store cannot be used, if it cannot: CodeUnavailable, CodeUnauthorized, CodeForbidden, or
// CodeInvalid when the bucket does not exist or is sealed with another key. It reads the service's keys, which Keepers
// wrap, so it comes before anything else.
func (s *Store) Check(ctx context.Context) error {
	if _, err := s.objects.List(ctx, Query{Prefix: tokenFolder, Limit: 1}); err != nil {
		return failed(err, "use the object store")
	}
	if err := s.openKeyring(ctx); err != nil {
		return err
	}
	if s.adopt && !s.authenticated.Load() {
		return s.adoptHeads(ctx)
	}
	return nil
}

// Keyring gives the service's keys, which seal Temporal's payloads, too.
func (s *Store) Keyring() *seal.Keyring { return s.keys }

// stackKeys holds the keys of one stack. They come from its identity, which a rename keeps.
type stackKeys struct {
	id      string
	box     *seal.Box // its objects
	secrets []byte    // its secrets, with the service's own provider
	digests []byte    // its bags
}

func (s *Store) ring(id string) *stackKeys {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.stackKeys[id]
	if !ok {
		r = &stackKeys{
			id:      id,
			box:     s.keys.Box("stack/" + id),
			secrets: s.keys.Key("stack/" + id + "/secrets"),
			digests: s.keys.Key("stack/" + id + "/digests"),
		}
		s.stackKeys[id] = r
	}
	return r
}

// stackKeysOf gives the keys of a stack by its name, from memory or from its head.
func (s *Store) stackKeysOf(ctx context.Context, name deployments.StackName) (*stackKeys, error) {
	s.mu.Lock()
	k, ok := s.names[name.String()]
	s.mu.Unlock()
	if ok && time.Since(k.read) < identityCacheTime {
		return s.ring(k.id), nil
	}
	h, _, err := s.readHead(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.ring(h.ID), nil
}

// cacheIdentity remembers what a stack's head says; one without an identity forgets it.
func (s *Store) cacheIdentity(name deployments.StackName, h Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.ID == "" {
		delete(s.names, name.String())
	} else {
		s.names[name.String()] = cachedIdentity{h.ID, h.Digests, time.Now()}
	}
}

// put seals a value and writes it.
func (s *Store) put(ctx context.Context, name deployments.StackName, key string, plain []byte) error {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return err
	}
	_, err = s.objects.Put(ctx, key, r.box.Seal(plain, sealContext(name, key)), Condition{})
	return failed(err, "write "+key)
}

// get reads a sealed value; ErrAbsent when there is none.
func (s *Store) get(ctx context.Context, name deployments.StackName, key string) ([]byte, error) {
	plain, _, err := s.getTagged(ctx, name, key)
	return plain, err
}

// getTagged is get, and returns the object's tag, too.
func (s *Store) getTagged(
	ctx context.Context, name deployments.StackName, key string,
) (plain []byte, tag string, err error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return nil, "", err
	}
	o, err := s.objects.Get(ctx, key)
	if err != nil {
		return nil, "", failed(err, "read "+key)
	}
	plain, err = s.unseal(r.box, o.Data, key, sealContext(name, key))
	if err == nil {
		return plain, o.Tag, nil
	}
	h, _, headErr := s.readHead(ctx, name) // another stack may have got the name
	if headErr != nil || h.ID == r.id {
		return nil, "", err
	}
	plain, err = s.unseal(s.ring(h.ID).box, o.Data, key, sealContext(name, key))
	return plain, o.Tag, err
}

// unseal opens the content of a sealed object. The error, CodeFormat, names the object and says what to do.
func (s *Store) unseal(box *seal.Box, data []byte, key, context string) ([]byte, error) {
	plain, err := box.Open(data, context)
	if err == nil {
		return plain, nil
	}
	next := "put back the last good copy of this object"
	if outdated := s.KeysOutdated(); outdated != nil && errors.Is(err, seal.ErrUnknownKey) {
		next = outdated.Error()
	}
	return nil, &deployments.Error{Code: deployments.CodeFormat, Err: err, Message: key +
		strings.TrimPrefix(err.Error(), context) + "; " + next}
}

func (s *Store) putJSON(ctx context.Context, name deployments.StackName, key string, v any) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write %s: %w", key, err)
	}
	return s.put(ctx, name, key, plain)
}

func (s *Store) getJSON(ctx context.Context, name deployments.StackName, key string, v any) error {
	plain, err := s.get(ctx, name, key)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(plain, v); err != nil {
		return damaged(key, err)
	}
	return nil
}

// deleteAll removes every object under a prefix.
func (s *Store) deleteAll(ctx context.Context, prefix string) error {
	l, err := s.objects.List(ctx, Query{Prefix: prefix})
	if err != nil {
		return failed(err, "list "+prefix)
	}
	return each(l.Keys, func(key string) error {
		return failed(s.objects.Delete(ctx, key), "delete "+key)
	})
}

// each calls f for every item, some at a time, and gives the first error.
func each(items []string, f func(string) error) error {
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	next := make(chan string)
	for range min(16, len(items)) {
		wg.Go(func() {
			for item := range next {
				if err := f(item); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	wg.Wait()
	return first
}

// failed gives an error of the objects a code, and says what was being done. ErrAbsent and ErrChanged stay in the
// chain.
func failed(err error, doing string) error {
	if err == nil {
		return nil
	}
	var e *deployments.Error
	switch {
	case errors.As(err, &e):
		return &deployments.Error{Code: e.Code, Message: doing + ": " + e.Message, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.Is(err, ErrAbsent):
		return deployments.Errorf(deployments.CodeNotFound, "%s: %w", doing, err)
	case errors.Is(err, ErrChanged):
		return deployments.Errorf(deployments.CodeConflict, "%s: %w", doing, err)
	case errors.Is(err, ErrTransient):
		return deployments.Errorf(deployments.CodeUnavailable, "%s: %w", doing, err)
	}
	return deployments.Errorf(deployments.CodeInternal, "%s: %w", doing, err)
}

// unreadable gives an error that is about one object, which is damaged or was never ours, and not about the store; else
// nil. A list names such an object, and shows the others.
func unreadable(err error) error {
	if code := deployments.CodeOf(err); err != nil && (code == deployments.CodeFormat ||
		code == deployments.CodeInvalid) {
		return err
	}
	return nil
}

// damaged is the error about an object that cannot be understood.
func damaged(key string, err error) error {
	return deployments.Errorf(deployments.CodeFormat, "%s is damaged: %w; put back the last good copy of this object",
		key, err)
}
