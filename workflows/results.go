package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// failedError returns the error with which a failed workflow ends, with the result as a detail, so that Temporal and
// its Web UI count it as failed; nil for any other status. A cancelled workflow returns its result instead: the SDK
// encodes the details of a CanceledError without the context of the workflow, so their seal would not bind them to it.
func failedError[T any](status engine.Status, text string, result T) error {
	if status != engine.StatusFailed {
		return nil
	}
	return temporal.NewApplicationErrorWithOptions(clip(text, messageBytes), deployments.ErrorEnded,
		temporal.ApplicationErrorOptions{
			NonRetryable: true, Details: []any{result},
		})
}

// resultOf returns the result that is a detail of the error with which a workflow or an activity ended.
func resultOf[T any](err error, kind string) (result T, ok bool) {
	var failure *temporal.ApplicationError
	if errors.As(err, &failure) {
		ok = failure.Type() == kind && failure.HasDetails() && failure.Details(&result) == nil
	}
	return result, ok
}

// InfoOf returns the result of a committed update from the error of its workflow; false if the update did not commit.
func InfoOf(err error) (deployments.UpdateInfo, bool) {
	info, ok := resultOf[deployments.UpdateInfo](err, deployments.ErrorEnded)
	return info, ok && info.Status != ""
}

// OutputOf returns the result of a Run from its error; false if the Run ended without a result.
func OutputOf(err error) (deployments.RunOutput, bool) {
	out, ok := resultOf[deployments.RunOutput](err, deployments.ErrorEnded)
	return out, ok && out.Result.Status != ""
}

// StepOf returns the result of a step from the error of its activity; false if the outcome is unknown.
func StepOf(err error) (deployments.StepOutput, bool) {
	out, ok := resultOf[deployments.StepOutput](err, deployments.ErrorStepFailed)
	return out, ok && out.Outcome != ""
}

// NotStartedOf returns of which step and attempt the error of an activity says, sealed, that it was not started.
func NotStartedOf(err error) (deployments.StepOutput, bool) {
	return resultOf[deployments.StepOutput](err, deployments.ErrorNotStarted)
}
