// Package keys keeps the service's keys in the bucket, wrapped by its master key or a key management service, with the
// identity of the store: it reads and makes them, rotates and drops them, and seals objects again.
//
// The layout, under the bucket's prefix:
//
//	keys/ring.json  the keys and the identity, wrapped
//
// All methods may be called concurrently, by any number of processes. Errors are *deployments.Error or end with the
// context.
package keys

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// Options of a Store.
type Options struct {
	// Master is the service's master key, 32 bytes. Values sealed with another one cannot be read.
	Master []byte
	// Keepers wrap the service's keys instead of Master: the first is the current one, the others are former ones.
	Keepers []seal.Keeper
	// Adopt accepts a bucket from before there were keys in it, and its heads. See statestore.Store.Check.
	Adopt bool
	// KeepEmpty makes Open leave an empty bucket as it is; SetUp creates its keys.
	KeepEmpty bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Layout says what the objects of the bucket are.
type Layout struct {
	// InUse are the folders of which one has an object if the bucket is in use.
	InUse []string
	// Sealed reports whether what is stored under a key is sealed, and As returns with what.
	Sealed func(key string) bool
	As     func(ctx context.Context, key string) (box *seal.Box, context string, err error)
	// Kind returns the kind of an object that is sealed or has a MAC; empty for others. Open reports why the service's
	// keys do not open it, or why its MAC is wrong.
	Kind func(key string) string
	Open func(ctx context.Context, key string) error
}

// Store is the typed store of the service's keys. See the package's description.
type Store struct {
	objects bucket.Objects
	ring    *seal.Keyring
	keepers []seal.Keeper
	adopt   bool
	keep    bool // see Options.KeepEmpty
	now     func() time.Time
	layout  Layout
	// authenticated means that every head has a MAC.
	authenticated atomic.Bool
	identity      atomic.Value // string; see Identity
	// unset are the keys that SetUp will write to the empty bucket; nil when it has keys.
	unset atomic.Pointer[keyringContent]
	// outdated is the error of reading the newest keys of the bucket, if any.
	outdated   atomic.Pointer[error]
	keyringTag atomic.Value // string: the tag of the keys in use
	keyringUse sync.Mutex   // held while the keyring is read or changed, and used
}

// New returns the store over a bucket.
func New(objects bucket.Objects, o Options, l Layout) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	ring := &seal.Keyring{}
	if len(o.Keepers) == 0 {
		var err error
		if ring, err = seal.NewKeyring(o.Master); err != nil {
			return nil, err
		}
		master, err := seal.NewMasterKeeper(o.Master)
		if err != nil {
			return nil, err
		}
		o.Keepers = []seal.Keeper{master}
	}
	return &Store{objects: objects, ring: ring, keepers: o.Keepers, adopt: o.Adopt, keep: o.KeepEmpty, now: o.Now,
		layout: l}, nil
}

// Ring returns the keys, which also seal Temporal's payloads.
func (s *Store) Ring() *seal.Keyring { return s.ring }
