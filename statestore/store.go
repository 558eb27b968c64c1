// Package statestore keeps everything that outlives an update, in an object store such as an S3 bucket: stacks with
// their heads and checkpoints here, and the rest in the packages below, whose stores are fields of Store.
//
// The layout, under the bucket's prefix, besides what those packages have:
//
//	stacks/ORG/PROJECT/STACK/head.json                 version and claim; changed by compare-and-swap only
//	stacks/…/checkpoints/VERSION.json.zst              immutable, Pulumi deployment JSON, secrets as ciphertexts
//	stacks/…/updates/ID/blob/HASH                      large values of an update
//	removed/ORG/PROJECT/STACK.json                     the next version of a removed stack's name; has a MAC
//
// Everything is sealed except heads, checkpoints and objects under removed/ and organizations/ (docs/adr/0002): a
// person must be able to read and repair those without the service, and they contain no readable secret.
//
// Its packages:
//
//   - access: who may do what, and the audit log, with the layout of their folders
//   - bucket: the objects, sealed as a whole or with a MAC, over S3 or in memory, with retries; it knows no stack
//   - creates: what is recorded of creates of resources, to find out what became of them
//   - identities: what is derived from the identities of stacks, and which creates of their resources come next
//   - jobs: deployments from git, schedules, webhooks and drift checks, with the layout of their folders
//   - journal: the journal of an update that the stock CLI executes
//   - keys: the service's keys and the identity of the store, wrapped; rotation and sealing again
//   - leases: what clients write that execute updates themselves, and the tokens of their leases
//   - organizations: which have workers of their own, quotas, and the mode of the service
//   - passphrase: secrets that a passphrase encrypts
//   - programs: bundles of the files of programs, and archives of plugins
//   - seal: encryption of what is stored, and its keys
//   - stackobjects: the sealed objects of stacks, by their names
//   - stacksecrets: secrets under the service's own keys of stacks
//   - stateedit: changes of a state by commands
//   - storetest: what every store must do, for tests
//   - updates: requests, histories, saves, event logs and outcomes of updates
//
// All methods may be called concurrently, by any number of processes. Errors are *deployments.Error or end with the
// context.
package statestore

import (
	"context"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/access"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/creates"
	"github.com/deployctl/deployctl/statestore/identities"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/deployctl/deployctl/statestore/keys"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/deployctl/deployctl/statestore/organizations"
	"github.com/deployctl/deployctl/statestore/programs"
	"github.com/deployctl/deployctl/statestore/seal"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/deployctl/deployctl/statestore/stacksecrets"
	"github.com/deployctl/deployctl/statestore/updates"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Options of a Store.
type Options = keys.Options

// Store is the typed store. See the package's description.
type Store struct {
	// Keys are the service's, with the identity of the store.
	Keys *keys.Store
	// Access is who may do what, and the audit log.
	Access *access.Store
	// Jobs are deployments from git, schedules, webhooks and drift checks.
	Jobs *jobs.Store
	// Creates are what is recorded of creates of resources.
	Creates *creates.Store
	// Organizations are what operators say of organizations: workers of their own, quotas, and the mode of the service.
	Organizations *organizations.Store
	// Programs are the bundles of files of programs, and the archives of their plugins.
	Programs *programs.Store
	// Leases are what clients write that execute updates themselves.
	Leases *leases.Store
	// Identities are what is derived from the identities of stacks.
	Identities *identities.Store
	// Secrets encrypts with the service's own keys of stacks.
	Secrets *stacksecrets.Store
	// Updates are what is said and known of updates.
	Updates *updates.Store

	objects bucket.Objects
	keys    *seal.Keyring  // of Keys
	adopt   bool           // see Options.Adopt
	sealed  *bucket.Sealed // objects of the service as a whole
	stacks  *stackobjects.Objects
	now     func() time.Time

	mu         sync.Mutex
	stackKeys  map[string]*stackKeys     // by stack id
	names      map[string]cachedIdentity // by stack name
	cache      map[string]*cacheEntry    // by stack id and version
	cacheOrder []string                  // of cache; what was used longest ago is first
	recent     recent
	heads      recentHeads
	headReads  headReads

	recreating chan struct{} // held by who reads all heads; see RecreateStack
	// swept are updates that had nothing for Sweep to remove when they ended.
	swept *lru.Cache[deployments.UpdateName, struct{}]
}

// cachedIdentity is a stack's identity, and its newest version with its digest, as last read.
type cachedIdentity struct {
	id       string
	identity string // Head.Identity
	version  int
	digest   string
	read     time.Time
}

// sweptKept is how many updates the store remembers that have nothing for Sweep.
const sweptKept = 4096

// identityCacheTime is how long a stack's identity is cached. It changes only when a stack is removed and another one
// gets its name.
const identityCacheTime = 5 * time.Second

// New returns a Store over objects, which should retry (see Retry).
func New(objects bucket.Objects, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	heads, err := newRecentHeads(o.Now)
	if err != nil {
		return nil, err
	}
	swept, err := lru.New[deployments.UpdateName, struct{}](sweptKept)
	if err != nil {
		return nil, err
	}
	s := &Store{
		swept: swept, heads: heads, objects: bucket.Guarded(objects), adopt: o.Adopt, now: o.Now,
		stackKeys: map[string]*stackKeys{}, names: map[string]cachedIdentity{},
		cache: map[string]*cacheEntry{}, recreating: make(chan struct{}, 1),
	}
	if s.Keys, err = keys.New(s.objects, o, s.layout()); err != nil {
		return nil, err
	}
	s.keys = s.Keys.Ring()
	s.sealed = &bucket.Sealed{Objects: s.objects, Keys: s.keys, Now: o.Now, Outdated: s.Keys.Outdated}
	s.stacks = &stackobjects.Objects{Sealed: s.sealed, Of: s.stackOf, Now: s.stackNow, Last: s.lastStack,
		ByID: func(id string) stackobjects.Stack { return s.ring(id).Stack }}
	return s, s.rooms()
}

// rooms makes the stores of the packages below.
func (s *Store) rooms() (err error) {
	s.Jobs, s.Creates = jobs.New(s.stacks), creates.New(s.stacks)
	s.Identities, s.Secrets = identities.New(s.sealed, s.identityOf), stacksecrets.Of(s.secretsKey)
	s.Updates = updates.New(s.stacks, updates.Stacks{Kept: s.kept, SavesAll: s.savesAll})
	if s.Access, err = access.New(s.sealed); err != nil {
		return err
	}
	s.Organizations, err = organizations.New(s.sealed, organizations.Stacks{Head: s.stackOfQuota,
		Identity: s.Keys.Identity})
	if err != nil {
		return err
	}
	if s.Programs, err = programs.New(s.stacks, s.Organizations.CheckUpload); err != nil {
		return err
	}
	s.Leases, err = leases.New(s.stacks, leases.Stacks{Holds: s.holdsLease, Judge: checkWritten, Checks: journalChecks})
	return err
}

// Check reports why the object store cannot be used: CodeUnavailable, CodeUnauthorized, CodeForbidden, or CodeInvalid
// when the bucket does not exist or is sealed with another key. It reads the service's keys, so it must be called
// first.
func (s *Store) Check(ctx context.Context) error {
	if _, err := s.objects.List(ctx, bucket.Query{Prefix: access.TokenFolder, Limit: 1}); err != nil {
		return bucket.Failed(err, "use the object store")
	}
	if err := s.Keys.Open(ctx); err != nil {
		return err
	}
	if s.adopt && !s.Keys.Authenticated() {
		return s.adoptHeads(ctx)
	}
	return nil
}

// stackKeys holds the keys of one stack. They are derived from its identity, which a rename keeps.
type stackKeys struct {
	stackobjects.Stack
	secrets []byte // for its secrets, with the service's own provider
	digests []byte // for its bags
}

func (s *Store) ring(id string) *stackKeys {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.stackKeys[id]
	if !ok {
		r = &stackKeys{
			Stack:   stackobjects.Stack{ID: id, Box: s.keys.Box("stack/" + id)},
			secrets: s.keys.Key("stack/" + id + "/secrets"),
			digests: s.keys.Key("stack/" + id + "/digests"),
		}
		s.stackKeys[id] = r
	}
	return r
}

// IsStack reports whether the stack of a name is the one with this identity, Head.ID; CodeNotFound when there is none.
// The cache is believed if it agrees: another stack may just have got the name.
func (s *Store) IsStack(ctx context.Context, name deployments.StackName, id string) (bool, error) {
	if k, ok := s.knownIdentity(ctx, name); ok && k.id == id {
		return true, nil
	}
	h, _, err := s.readHead(ctx, name)
	return err == nil && h.ID == id, err
}

// stackKeysOf returns the keys of a stack by its name, from the cache or from its head.
func (s *Store) stackKeysOf(ctx context.Context, name deployments.StackName) (*stackKeys, error) {
	if k, ok := s.knownIdentity(ctx, name); ok {
		return s.ring(k.id), nil
	}
	h, _, err := s.readHead(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.ring(h.ID), nil
}

// secretsKey returns the key of a stack's secrets, with the service's own provider.
func (s *Store) secretsKey(ctx context.Context, name deployments.StackName) ([]byte, error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.secrets, nil
}

func (s *Store) stackOf(ctx context.Context, name deployments.StackName) (stackobjects.Stack, error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return stackobjects.Stack{}, err
	}
	return r.Stack, nil
}

// lastStack returns the stack that had a name when that was looked at last.
func (s *Store) lastStack(name deployments.StackName) (stackobjects.Stack, bool) {
	s.mu.Lock()
	was, known := s.names[name.String()]
	s.mu.Unlock()
	if !known {
		return stackobjects.Stack{}, false
	}
	return s.ring(was.id).Stack, true
}

// stackOfQuota returns what quotas count of a stack.
func (s *Store) stackOfQuota(ctx context.Context, name deployments.StackName) (organizations.Stack, error) {
	h, err := s.Head(ctx, name)
	of := organizations.Stack{Resources: h.Resources, Next: h.Next}
	if h.Active != nil && h.Active.Version != removal {
		of.Update = h.Active.Version
	}
	return of, err
}

func (s *Store) stackNow(ctx context.Context, name deployments.StackName) (stackobjects.Stack, error) {
	h, _, err := s.readHead(ctx, name)
	if err != nil {
		return stackobjects.Stack{}, err
	}
	return s.ring(h.ID).Stack, nil
}

// cacheIdentity caches the identity in a stack's head; a head without an identity clears the entry.
func (s *Store) cacheIdentity(name deployments.StackName, h Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.ID == "" {
		delete(s.names, name.String())
		s.heads.drop(name)
	} else {
		s.names[name.String()] = cachedIdentity{h.ID, h.Identity, h.Version, h.Digest, time.Now()}
	}
}
