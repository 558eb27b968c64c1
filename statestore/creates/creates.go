// Package creates keeps what is recorded of creates of resources, for later attempts to find out what became of them:
// that there was no such resource before, which mark it was to get, and under which id it was made.
//
// The layout, under the bucket's prefix:
//
//	stacks/ORG/PROJECT/STACK/creates/STACK-ID/SEED/{absence,made,mark}
//
// Everything is sealed. All methods may be called concurrently, by any number of processes. Errors are
// *deployments.Error or end with the context.
package creates

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Store is the typed store of creates. See the package's description.
type Store struct{ stacks *stackobjects.Objects }

// New returns the store over the objects of stacks.
func New(stacks *stackobjects.Objects) *Store { return &Store{stacks} }

// absence is what NoteAbsence records. Earlier builds recorded the text of Sought alone, of a create whose seed no
// other has.
type absence struct {
	Sought  string `json:"sought"`
	Version int    `json:"version"` // of the update that looked
}

// UnmarshalJSON reads what this and earlier builds have recorded.
func (a *absence) UnmarshalJSON(data []byte) error {
	type plain absence
	if err := json.Unmarshal(data, &a.Sought); err == nil {
		return nil
	}
	return json.Unmarshal(data, (*plain)(a))
}

// NoteAbsence records that the resource of a create was looked for before an attempt, and did not exist. The create
// is identified by its seed, the same in every update that attempts it; sought is a digest of what was looked for,
// and version that of the update that looked.
func (s *Store) NoteAbsence(
	ctx context.Context, name deployments.StackName, seed []byte, sought string, version int,
) error {
	return s.putRecord(ctx, name, seed, absenceObject, absence{sought, version})
}

// SawAbsence reports whether the last call of NoteAbsence for a create was for the same search, in an update since a
// version: a create before that one may have had the seed, too.
func (s *Store) SawAbsence(
	ctx context.Context, name deployments.StackName, seed []byte, sought string, since int,
) (bool, error) {
	var noted absence
	err := s.record(ctx, name, seed, absenceObject, &noted)
	return err == nil && noted != (absence{}) && noted.Sought == sought && noted.Version >= since, err
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
