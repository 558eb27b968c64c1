package statestore

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// PutOutcome stores the outcome of a step's attempt, for the case that it cannot report it. round counts how often the
// core has issued the step.
func (s *Store) PutOutcome(ctx context.Context, u deployments.UpdateName, round int, e engine.StepFinished) error {
	return s.stacks.PutJSON(ctx, u.StackName, outcomeKey(u, e.Op, round), e)
}

// Outcome returns what PutOutcome stored; nil when there is nothing.
func (s *Store) Outcome(ctx context.Context, u deployments.UpdateName, op, round int) (*engine.StepFinished, error) {
	var e engine.StepFinished
	_, err := s.stacks.GetJSON(ctx, u.StackName, outcomeKey(u, op, round), &e)
	if errors.Is(err, bucket.ErrAbsent) {
		return nil, nil
	}
	return &e, err
}

// Answered returns the operations of an update that the store knows to have been answered, each with its last round
// that was: those that have changed the state, and those of which an attempt has left its outcome.
func (s *Store) Answered(ctx context.Context, u deployments.UpdateName) (map[int]int, error) {
	last, err := s.LastSave(ctx, u)
	if err != nil {
		return nil, err
	}
	deltas, err := s.LoadDeltas(ctx, u, 0, last)
	if err != nil {
		return nil, err
	}
	prefix := stackobjects.UpdateKey(u, "outcome", "")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: prefix})
	if err != nil {
		return nil, bucket.Failed(err, "list "+prefix)
	}
	answered := map[int]int{}
	for _, key := range l.Keys {
		var op, round int
		if n, _ := fmt.Sscanf(key[len(prefix):], "%d.%d", &op, &round); n == 2 {
			answered[op] = max(answered[op], round)
		}
	}
	for _, d := range deltas {
		if d.Op != 0 && d.Kind != engine.DeltaBegin {
			answered[d.Op] = math.MaxInt
		}
	}
	return answered, nil
}

func outcomeKey(u deployments.UpdateName, op, round int) string {
	return stackobjects.UpdateKey(u, "outcome", fmt.Sprintf("%d.%d", op, round))
}

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

// CreateMark is the mark of a create, and where its resource bears it. The zero value is none.
type CreateMark struct {
	Place string `json:"place,omitempty"`
	Text  string `json:"text,omitempty"`
}

// NoteMark records before a create which mark its inputs have. Without it, what bears no mark may be of this create.
func (s *Store) NoteMark(ctx context.Context, name deployments.StackName, seed []byte, mark CreateMark) error {
	return s.putRecord(ctx, name, seed, markObject, mark)
}

// NotedMark returns what NoteMark recorded last for a create; the zero value when there is nothing.
func (s *Store) NotedMark(ctx context.Context, name deployments.StackName, seed []byte) (mark CreateMark, err error) {
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

// createObject is the name of an object with what is recorded of a create.
type createObject string

// The objects of a create.
const (
	madeObject    createObject = "made"
	absenceObject createObject = "absence"
	markObject    createObject = "mark"
)

// createKey returns the key of a record of a create. A stack that is made again has the seeds of the former one of its
// name, and an update of that one may still write: so the key has what no two stacks share.
func createKey(r *stackKeys, name deployments.StackName, seed []byte, record createObject) string {
	return stackobjects.Key(name, "creates", r.ID, hex.EncodeToString(seed), string(record))
}

// putRecord stores a record of a create.
func (s *Store) putRecord(
	ctx context.Context, name deployments.StackName, seed []byte, record createObject, v any,
) error {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return err
	}
	return s.stacks.PutJSON(ctx, name, createKey(r, name, seed, record), v)
}

// record reads a record of a create; v stays as it is when there is none.
func (s *Store) record(
	ctx context.Context, name deployments.StackName, seed []byte, record createObject, v any,
) error {
	r, err := s.stackKeysOf(ctx, name)
	if err == nil {
		_, err = s.stacks.GetJSON(ctx, name, createKey(r, name, seed, record), v)
	}
	if errors.Is(err, bucket.ErrAbsent) {
		return nil
	}
	return err
}
