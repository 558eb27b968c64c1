package statestore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// PutOutcome stores the outcome of a step's attempt, for the case that it cannot report it. round counts how often the
// core has issued the step.
func (s *Store) PutOutcome(ctx context.Context, u deployments.UpdateName, round int, e engine.StepFinished) error {
	return s.putJSON(ctx, u.StackName, outcomeKey(u, e.Op, round), e)
}

// Outcome returns what PutOutcome stored; nil when there is nothing.
func (s *Store) Outcome(ctx context.Context, u deployments.UpdateName, op, round int) (*engine.StepFinished, error) {
	var e engine.StepFinished
	err := s.getJSON(ctx, u.StackName, outcomeKey(u, op, round), &e)
	if errors.Is(err, ErrAbsent) {
		return nil, nil
	}
	return &e, err
}

func outcomeKey(u deployments.UpdateName, op, round int) string {
	return updateKey(u, "outcome", fmt.Sprintf("%d.%d", op, round))
}

// NoteAbsence records that the resource of a create did not exist before the first attempt. The create is identified by
// its seed, which is the same in every update that attempts it.
func (s *Store) NoteAbsence(ctx context.Context, name deployments.StackName, seed []byte) error {
	return s.putJSON(ctx, name, absenceKey(name, seed), true)
}

// SawAbsence reports whether NoteAbsence was called for a create.
func (s *Store) SawAbsence(ctx context.Context, name deployments.StackName, seed []byte) (bool, error) {
	var seen bool
	err := s.getJSON(ctx, name, absenceKey(name, seed), &seen)
	if errors.Is(err, ErrAbsent) {
		return false, nil
	}
	return seen, err
}

func absenceKey(name deployments.StackName, seed []byte) string {
	return stackKey(name, "creates", hex.EncodeToString(seed), "absent")
}
