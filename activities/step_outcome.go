package activities

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"go.temporal.io/sdk/temporal"
)

// guarded carries out the step. A panic ends it: before the call as failed, after it as undecidable. It is not
// repeated, because a repeated attempt would panic again.
func (at *attempt) guarded(ctx context.Context) (result engine.StepFinished, err error) {
	err = panics.Do("carrying out "+string(at.step.Kind)+" "+string(at.step.URN), func() (err error) {
		result, err = at.run(ctx)
		return err
	})
	var defect *panics.PanicError
	switch {
	case !errors.As(err, &defect):
		return result, err
	case at.sent:
		return engine.StepFinished{Outcome: engine.OutcomeUndecidable, Error: defect.Error()}, nil
	}
	return failed(defect.Error()), nil
}

// unsuccessful returns an error for a failed, partial or undecidable step, with the output as its detail, so that
// Temporal counts the activity as failed, too. It returns nil for other outcomes.
func unsuccessful(ctx context.Context, out deployments.StepOutput) error {
	switch out.Outcome {
	case engine.OutcomeFailed, engine.OutcomePartial, engine.OutcomeUndecidable:
	default:
		return nil
	}
	text := out.Error
	if text == "" && len(out.Failures) > 0 {
		text = out.Failures[0].Reason
	}
	if e := out.Evidence; e != nil && e.Class != engine.ErrorDefinite {
		text += "; the error is " + e.String()
		if e.Look {
			text += ": it is looked for"
		} else if e.Looked != "" {
			text += ": " + e.Looked
		}
	}
	return temporal.NewApplicationErrorWithOptions(cut(ctx, text, maxFailure), deployments.ErrorStepFailed,
		temporal.ApplicationErrorOptions{
			NonRetryable: true, Details: []any{out},
		})
}

// unsent ends an attempt that made no call because of an error of the service itself: a transient error is retried, any
// other fails the step, which had no effect.
func unsent(result engine.StepFinished, err error) (engine.StepFinished, error) {
	if isApplication(err) || interrupted(err) || errors.Is(err, context.DeadlineExceeded) {
		return result, err
	}
	if retryable[deployments.CodeOf(err)] {
		return result, postponed(err.Error(), 0)
	}
	return failed(err.Error()), nil
}
