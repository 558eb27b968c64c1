// Package statestore keeps everything that outlives an update: stacks, checkpoints, deltas, event logs, outcomes,
// history, project bundles and access tokens, in an object store such as an S3 bucket.
//
// The layout, under the bucket's prefix:
//
//	stacks/ORG/PROJECT/STACK/head.json                 version and claim; changed by compare-and-swap only
//	stacks/…/checkpoints/VERSION.json.zst              immutable, Pulumi deployment JSON, secrets as ciphertexts
//	stacks/…/updates/ID/{update,delta/N,events/STREAM/N,outcome/OP.ROUND,aside/NAME/PART,blob/HASH}
//	stacks/…/history/INVERSE                           one per numbered update; the newest sorts first
//	blobs/STACK-ID/files/MONTH/HASH                    project files and manifests of one stack
//	removed/ORG/PROJECT/STACK.json                     the next version of a removed stack's name; has a MAC
//	identities/HASH                                    which creates of the resources of an identity come next
//	tokens/NAME                                        access tokens, hashed
//	keys/ring.json                                     the service's keys and the store's identity, wrapped by its
//	                                                   master key or a key management service
//	members/ORG/NAME                                   owners of tokens, and their grants; ORG is _ for all of them
//	audit/ORG/DAY/TIME-ID                              the audit log
//	organizations/ORG                                  the organization has its own workers; has a MAC
//	service/mode                                       maintenance or read-only mode, until when
//	plugins/ORG/{archives/HASH/{index,N},downloads/HASH,versions/HASH}
//	                                                   plugins that its workers have downloaded
//
// Everything is sealed except heads, checkpoints and objects under removed/ and organizations/ (docs/adr/0002): a
// person must be able to read and repair those without the service, and they contain no readable secret.
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
	"github.com/deployctl/deployctl/statestore/seal"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Options of a Store.
type Options struct {
	// Master is the service's master key, 32 bytes. Values sealed with another one cannot be read.
	Master []byte
	// Keepers wrap the service's keys instead of Master: the first is the current one, the others are former ones.
	Keepers []seal.Keeper
	// Adopt accepts a bucket from before there were keys in it, and its heads. See Store.Check.
	Adopt bool
	// KeepEmpty makes Check leave an empty bucket as it is; SetUp creates its keys.
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
	// authenticated means that every head has a MAC.
	authenticated atomic.Bool
	identity      atomic.Value // string; see Identity
	// unset are the keys that SetUp will write to the empty bucket; nil when it has keys.
	unset atomic.Pointer[keyringContent]

	mu         sync.Mutex
	stackKeys  map[string]*stackKeys     // by stack id
	names      map[string]cachedIdentity // by stack name
	cache      map[string]*cacheEntry    // by stack id and version
	cacheOrder []string                  // of cache, oldest first
	recent     recent

	mode       lastMode
	clientLogs clientLogs
	snapshots  *lru.Cache[writtenLease, int64] // the sizes of what leases wrote last; see takeSnapshot

	callers  callers
	tokensOf *lru.Cache[string, string] // the organizations of tokens, by name; see roomForToken
	// outdated is the error of reading the newest keys of the bucket, if any.
	outdated   atomic.Pointer[error]
	keyringTag atomic.Value // string: the tag of the keys in use
	keyringUse sync.Mutex   // held while the keyring is read or changed, and used
}

// cachedIdentity is a stack's identity, and its newest version with its digest, as last read.
type cachedIdentity struct {
	id       string
	identity string // Head.Identity
	version  int
	digest   string
	read     time.Time
}

// identityCacheTime is how long a stack's identity is cached. It changes only when a stack is removed and another one
// gets its name.
const identityCacheTime = 5 * time.Second

// New returns a Store over objects, which should retry (see Retry).
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
	snapshots, err := lru.New[writtenLease, int64](idleLogs)
	if err != nil {
		return nil, err
	}
	tokensOf, err := lru.New[string, string](maxTokensKnown)
	if err != nil {
		return nil, err
	}
	return &Store{
		snapshots: snapshots, tokensOf: tokensOf,
		objects: guarded{objects}, keys: keys, keepers: o.Keepers, adopt: o.Adopt, keep: o.KeepEmpty, now: o.Now,
		stackKeys: map[string]*stackKeys{}, names: map[string]cachedIdentity{},
		cache: map[string]*cacheEntry{}, clientLogs: clientLogs{queues: map[logOfLease]*logQueue{}},
	}, nil
}

// Check reports why the object store cannot be used: CodeUnavailable, CodeUnauthorized, CodeForbidden, or CodeInvalid
// when the bucket does not exist or is sealed with another key. It reads the service's keys, so it must be called
// first.
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

// Keyring returns the service's keys, which also seal Temporal's payloads.
func (s *Store) Keyring() *seal.Keyring { return s.keys }

// stackKeys holds the keys of one stack. They are derived from its identity, which a rename keeps.
type stackKeys struct {
	id      string
	box     *seal.Box // for its objects
	secrets []byte    // for its secrets, with the service's own provider
	digests []byte    // for its bags
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

// IdentityOf returns the identity of a stack, as it was identityCacheTime ago at the earliest; CodeNotFound when there
// is none.
func (s *Store) IdentityOf(ctx context.Context, name deployments.StackName) (string, error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return "", err
	}
	return r.id, nil
}

// stackKeysOf returns the keys of a stack by its name, from the cache or from its head.
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

// cacheIdentity caches the identity in a stack's head; a head without an identity clears the entry.
func (s *Store) cacheIdentity(name deployments.StackName, h Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.ID == "" {
		delete(s.names, name.String())
	} else {
		s.names[name.String()] = cachedIdentity{h.ID, h.Identity, h.Version, h.Digest, time.Now()}
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

// getTagged is get that also returns the object's tag.
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

// each calls f for every item, some concurrently, and returns the first error.
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

// failed returns an error of the objects with a code and with what was being done. ErrAbsent and ErrChanged stay in the
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

// unreadable returns an error that concerns one object, which is damaged or foreign, and not the store; else nil. A
// list reports such an object and shows the others.
func unreadable(err error) error {
	if code := deployments.CodeOf(err); err != nil && (code == deployments.CodeFormat ||
		code == deployments.CodeInvalid) {
		return err
	}
	return nil
}

// damaged returns the error about an object that cannot be parsed.
func damaged(key string, err error) error {
	if interrupted(err) {
		return failed(err, "read "+key)
	}
	return deployments.Errorf(deployments.CodeFormat, "%s is damaged: %w; put back the last good copy of this object",
		key, err)
}
