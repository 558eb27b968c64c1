package bucket

import (
	"context"
	"errors"
	"time"
)

// Errors of Objects. They may be wrapped.
var (
	// ErrAbsent: there is no object with this key.
	ErrAbsent = errors.New("no such object")
	// ErrChanged: the condition of a Put did not hold, and that attempt wrote nothing. An earlier attempt of the same
	// Put, whose reply was lost, may have changed the object.
	ErrChanged = errors.New("the object is not what the condition says")
	// ErrTransient: the call failed for a reason that may pass. A Put or a Delete may still have had its effect.
	ErrTransient = errors.New("the object store did not answer")
)

// Objects is a flat store of named byte strings, such as a bucket. All methods may be called concurrently.
//
//   - An acknowledged write is seen by every Get and List that begins later.
//   - A write is atomic: no Get sees a part of it.
//   - Of several conditional Puts of one key that race, at most one succeeds for each state of the object.
//   - Any call may fail with an error that wraps ErrTransient; errors other than the three of this package are final.
//
// storetest.Objects checks it.
type Objects interface {
	// Get returns an object's bytes, and the tag of this content; ErrAbsent when there is none.
	Get(ctx context.Context, key string) (Object, error)
	// Tag returns the tag of an object's content without the content; ErrAbsent when there is none.
	Tag(ctx context.Context, key string) (string, error)
	// Put writes an object if the condition holds, and returns the new content's tag; ErrChanged if it does not hold.
	Put(ctx context.Context, key string, data []byte, c Condition) (tag string, err error)
	// Delete removes an object; removing an absent object succeeds.
	Delete(ctx context.Context, key string) error
	// List returns keys in byte order.
	List(ctx context.Context, q Query) (Listing, error)
}

// Object is an object's content. The caller may keep Data but not change it.
type Object struct {
	Data []byte
	// Tag differs between different contents of one key.
	Tag string
}

// Condition restricts a Put. The zero Condition always holds.
type Condition struct {
	// Absent requires that there is no object.
	Absent bool
	// Tag, if not empty, must be the tag of the existing object.
	Tag string
}

// Query selects keys.
type Query struct {
	Prefix string
	// After excludes this key and all that sort before it.
	After string
	// Limit is the largest number of keys; 0 means all.
	Limit int
	// Fold returns, instead of all keys with a '/' after the prefix, their common prefix up to that '/', once. After
	// may be such a prefix.
	Fold bool
}

// Listing is the answer to a Query.
type Listing struct {
	Keys []string
	// Written is when each object was last written, by the store's clock; zero for a common prefix.
	Written []time.Time
	// More means that the limit left keys out.
	More bool
}
