// Package identities keeps what is derived from the identities of stacks, and which creates of their resources come
// next.
//
// A stack has an identity, from which the names of its resources and their marks of ownership are derived with a key of
// the service. It outlives the stack: one that is made again under the name has the identity of the former, so that it
// knows again what is that one's (docs/adr/0061). It is the stack's first name, which a rename keeps; a stack that gets
// a name which another one has left by a rename has the next identity, NAME#2.
//
// The layout, under the bucket's prefix:
//
//	identities/HASH  which creates of the resources of an identity come next
//
// Everything is sealed. All methods may be called concurrently, by any number of processes. Errors are
// *deployments.Error or end with the context.
package identities

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// Store is the typed store of identities. See the package's description.
type Store struct {
	sealed *bucket.Sealed
	of     func(context.Context, deployments.StackName) (id, text string, err error)
}

// New returns the store over a bucket. Of returns the id of a stack and its identity, which may be cached; CodeNotFound
// when there is no such stack.
func New(
	sealed *bucket.Sealed, of func(context.Context, deployments.StackName) (id, text string, err error),
) *Store {
	return &Store{sealed, of}
}

// Identity is what is derived from a stack's identity. The keys are of this purpose alone, and never shown.
type Identity struct {
	// Text is the identity itself; empty for a stack of an earlier release, whose other fields are derived from its id.
	Text string
	// Seeds and Marks are keys: the engine derives the seeds of creates from the one, and marks of creates from the other.
	Seeds, Marks []byte
	// Owner is what provider plugins get as Identity.StackID.
	Owner string
}

// Folder has an object for each identity of which something is remembered.
const Folder = "identities/"

// ownerPrefix begins Identity.Owner; see provider.Identity.Owner.
const ownerPrefix = "identity-"

// Of returns the identity of a stack, which may be cached; CodeNotFound when there is no such stack.
func (s *Store) Of(ctx context.Context, name deployments.StackName) (Identity, error) {
	id, text, err := s.of(ctx, name)
	if err != nil {
		return Identity{}, err
	}
	of := identified(id, text)
	i := Identity{Text: text, Seeds: s.fromIdentity("seeds", of), Marks: s.fromIdentity("marks", of), Owner: id}
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
	sum := hmac.New(sha256.New, s.sealed.Keys.Key("identity"))
	_, _ = sum.Write([]byte(purpose + "\x00" + of))
	return sum.Sum(nil)
}

// lastCreate is what is remembered of the creates of a resource that the stack does not have any more, or has replaced.
type lastCreate struct {
	Next int   `json:"next"`          // the generation of the next create
	Day  int64 `json:"day,omitempty"` // when it was noted, in days since 1970
}

// keptGenerations is how many resources are remembered; the oldest are forgotten first. One that is forgotten would get
// its first name again.
const keptGenerations = 5000

// Key returns the key of what is remembered of an identity, by the id of the stack and its text.
func (s *Store) Key(id, text string) string {
	return Folder + hex.EncodeToString(s.fromIdentity("name", identified(id, text))[:16])
}

// Generations returns the generation of the next create of each resource, by engine.Label, where it is not the first,
// nor the second of what the stack has.
func (s *Store) Generations(ctx context.Context, name deployments.StackName) (map[string]int, error) {
	id, text, err := s.of(ctx, name)
	if err != nil {
		return nil, err
	}
	known, _, err := s.readGenerations(ctx, s.Key(id, text))
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

// Raise remembers the generations of the next creates, by engine.Label. They only grow, so it does not matter whether
// the update that tells them is committed.
func (s *Store) Raise(ctx context.Context, name deployments.StackName, raise map[string]int) error {
	if len(raise) == 0 {
		return nil
	}
	id, text, err := s.of(ctx, name)
	if err != nil {
		return err
	}
	key := s.Key(id, text)
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
	today := s.sealed.Now().Unix() / int64(24*time.Hour/time.Second)
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
