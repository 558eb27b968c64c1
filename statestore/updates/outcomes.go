package updates

import (
	"context"
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
	l, err := s.stacks.Sealed.Objects.List(ctx, bucket.Query{Prefix: prefix})
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
