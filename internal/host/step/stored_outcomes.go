package step

import (
	"context"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
)

// leaveOutcome stores the result of an attempt for Settle, and what a create has made also for later updates, which its
// own may leave to them. It retries until the store accepts it or ctx ends. An update of a later stack of the name has
// other attempts.
func (s *Steps) leaveOutcome(ctx context.Context, round int, step engine.Step, result engine.StepFinished) {
	_ = failure.Persist(ctx, failure.MayPass, func() error {
		if there, err := s.store.IsStack(ctx, s.update.StackName, s.stackID); err != nil || !there {
			return err
		}
		return s.store.Updates.PutOutcome(ctx, s.update, round, result)
	})
	if isCreate(step) && len(step.Seed) > 0 && hadEffect(result) && result.ID != "" {
		_ = failure.Persist(ctx, failure.MayPass, func() error {
			return s.store.Creates.PutMade(ctx, s.update.StackName, step.Seed, result.ID)
		})
	}
}

// isCreate reports whether a step makes a resource.
func isCreate(s engine.Step) bool {
	return s.Kind == engine.StepCreate || s.Kind == engine.StepCreateReplacement
}

// leftOutcome returns the result that the lost attempt of the last round has stored, or a result of an earlier round
// that had its effect.
func (s *Steps) leftOutcome(ctx context.Context, op, last int) (engine.StepFinished, bool, error) {
	for round := last; round > 0; round-- {
		left, err := s.store.Updates.Outcome(ctx, s.update, op, round)
		if err != nil {
			return engine.StepFinished{}, false, err
		}
		if left != nil && (round == last || left.Outcome == engine.OutcomeDone ||
			left.Outcome == engine.OutcomePartial) {
			return *left, true, nil
		}
	}
	return engine.StepFinished{}, false, nil
}

// spend notes that the call of a round of an operation may have had its effect.
func (s *Steps) spend(op, round int) {
	if known, _ := s.spent.Load(op); known == nil || known.(int) < round {
		s.spent.Store(op, round)
	}
}
