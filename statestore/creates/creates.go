// Package creates keeps what is recorded of creates of resources, for later attempts to find out what became of them:
// that there was no such resource before, which mark it was to get, and under which id it was made.
//
// The layout, under the bucket's prefix:
//
//	stacks/ORG/PROJECT/STACK/creates/STACK-ID/SEED/{made,mark}
//	stacks/ORG/PROJECT/STACK/creates/STACK-ID/absences/VERSION-TIME-RANDOM    of several creates
//
// Earlier builds recorded absences as SEED/absence.
//
// Everything is sealed. All methods may be called concurrently, by any number of processes. Errors are
// *deployments.Error or end with the context.
package creates

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/flight"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Store is the typed store of creates. See the package's description.
type Store struct {
	stacks *stackobjects.Objects

	mu     sync.Mutex
	queues map[noted]*queue

	read    *lru.Cache[string, map[string]string] // absences by their keys
	reading flight.Group[map[string]string]       // the same
}

// New returns the store over the objects of stacks.
func New(stacks *stackobjects.Objects) *Store {
	read, _ := lru.New[string, map[string]string](absencesRead) // it is not negative
	return &Store{stacks: stacks, queues: map[noted]*queue{}, read: read}
}

// Mark is the mark of a create, and where its resource bears it. The zero value is none.
type Mark struct {
	Place string `json:"place,omitempty"`
	Text  string `json:"text,omitempty"`
}

// NoteMark records before a create which mark its inputs have. Without it, what bears no mark may be of this create.
func (s *Store) NoteMark(ctx context.Context, name deployments.StackName, seed []byte, mark Mark) error {
	return s.putRecord(ctx, name, seed, markObject, mark)
}

// NotedMark returns what NoteMark recorded last for a create; the zero value when there is nothing.
func (s *Store) NotedMark(ctx context.Context, name deployments.StackName, seed []byte) (mark Mark, err error) {
	err = s.record(ctx, name, seed, markObject, &mark)
	return mark, err
}

// PutMade records under which id a create has made its resource, when its update may not hear of it any more.
func (s *Store) PutMade(ctx context.Context, name deployments.StackName, seed []byte, id string) error {
	return s.putRecord(ctx, name, seed, madeObject, id)
}

// Made returns what PutMade recorded for a create; "" when there is nothing.
func (s *Store) Made(ctx context.Context, name deployments.StackName, seed []byte) (id string, err error) {
	err = s.record(ctx, name, seed, madeObject, &id)
	return id, err
}

// The objects of a create.
const (
	madeObject    = "made"
	absenceObject = "absence"
	markObject    = "mark"
)

// Folder returns the folder of the creates of a stack.
func Folder(name deployments.StackName) string { return stackobjects.Key(name, "creates", "") }

// Keys returns the keys of all that may be recorded of a create of a stack.
func Keys(stack stackobjects.Stack, name deployments.StackName, seed []byte) []string {
	return []string{keyOf(stack, name, seed, absenceObject), keyOf(stack, name, seed, madeObject),
		keyOf(stack, name, seed, markObject)}
}

// keyOf returns the key of a record of a create. A stack that is made again has the seeds of the former one of its
// name, and an update of that one may still write: so the key has what no two stacks share.
func keyOf(stack stackobjects.Stack, name deployments.StackName, seed []byte, record string) string {
	return stackobjects.Key(name, "creates", stack.ID, hex.EncodeToString(seed), record)
}

// putRecord stores a record of a create.
func (s *Store) putRecord(
	ctx context.Context, name deployments.StackName, seed []byte, record string, v any,
) error {
	stack, err := s.stacks.Of(ctx, name)
	if err != nil {
		return err
	}
	return s.stacks.PutJSON(ctx, name, keyOf(stack, name, seed, record), v)
}

// record reads a record of a create; v stays as it is when there is none.
func (s *Store) record(
	ctx context.Context, name deployments.StackName, seed []byte, record string, v any,
) error {
	stack, err := s.stacks.Of(ctx, name)
	if err == nil {
		_, err = s.stacks.GetJSON(ctx, name, keyOf(stack, name, seed, record), v)
	}
	if errors.Is(err, bucket.ErrAbsent) {
		return nil
	}
	return err
}
