package statestore

import (
	"context"
	"errors"
	"time"
)

// Errors of Objects. They may be wrapped.
var (
	// ErrAbsent: there is no object with this key.
	ErrAbsent = errors.New("no such object")
	// ErrChanged: the condition of a Put did not hold, and nothing was written by that attempt. An earlier attempt of
	// the same Put, whose reply was lost, may be what changed the object.
	ErrChanged = errors.New("the object is not what the condition says")
	// ErrTransient: the call failed for a reason that may pass. A Put or a Delete may still have had its effect.
	ErrTransient = errors.New("the object store did not answer")
)

// Objects is a flat store of named byte strings, such as a bucket. All methods may be called concurrently.
//
//   - A write that was answered is seen by every Get and List that begins later.
//   - A write is whole or not there: no Get sees a part of it.
//   - Of several conditional Puts of one key that race, at most one succeeds for each state of the object.
//   - Any call may fail with an error that wraps ErrTransient; other errors than the three of this package are final.
//
// storetest.Objects checks it.
type Objects interface {
	// Get gives an object's bytes, and the tag of this content; ErrAbsent when there is none.
	Get(ctx context.Context, key string) (Object, error)
	// Tag gives the tag of an object's content without the content; ErrAbsent when there is none.
	Tag(ctx context.Context, key string) (string, error)
	// Put writes an object when the condition holds, and gives the new content's tag; ErrChanged when it does not hold.
	Put(ctx context.Context, key string, data []byte, c Condition) (tag string, err error)
	// Delete removes an object. One that is not there is removed already.
	Delete(ctx context.Context, key string) error
	// List gives keys in byte order.
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
	// Absent: there must be no object.
	Absent bool
	// Tag, when not empty, must be the tag of the object that is there.
	Tag string
}

// Query selects keys.
type Query struct {
	Prefix string
	// After leaves out this key and all that sort before it.
	After string
	// Limit bounds the number of keys; zero means all.
	Limit int
	// Fold gives, in place of all keys that have a '/' after the prefix, their common beginning up to that '/', once.
	// After may be such a beginning.
	Fold bool
}

// Listing is the answer to a Query.
type Listing struct {
	Keys []string
	// Written says when each key's object was last written, by the store's own clock; zero for a common beginning.
	Written []time.Time
	// More: the limit left keys out.
	More bool
}
