package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// ending is how a workflow ends with its result: well, or as failed, with the result as a detail of the error. So
// Temporal and its Web UI count it as what it is. A cancelled one returns its result: the SDK encodes the details of a
// CanceledError without the context of the workflow, so that their seal would bind them to none.
func ending[T any](status engine.Status, text string, result T) error {
	if status != engine.StatusFailed {
		return nil
	}
	return temporal.NewApplicationErrorWithOptions(clip(text, messageBytes), deployments.ErrorEnded,
		temporal.ApplicationErrorOptions{
			NonRetryable: true, Details: []any{result},
		})
}

// resultOf gives what a workflow or an activity came to that ended with an error: a detail of it.
func resultOf[T any](err error, kind string) (result T, ok bool) {
	var failure *temporal.ApplicationError
	if errors.As(err, &failure) {
		ok = failure.Type() == kind && failure.HasDetails() && failure.Details(&result) == nil
	}
	return result, ok
}

// InfoOf gives what an update came to that has settled, from the error of its workflow; false if that did not settle.
func InfoOf(err error) (deployments.UpdateInfo, bool) {
	info, ok := resultOf[deployments.UpdateInfo](err, deployments.ErrorEnded)
	return info, ok && info.Status != ""
}

// OutputOf gives what a Run came to that has ended, from its error; false if that ended otherwise.
func OutputOf(err error) (deployments.RunOutput, bool) {
	out, ok := resultOf[deployments.RunOutput](err, deployments.ErrorEnded)
	return out, ok && out.Result.Status != ""
}

// StepOf gives what a step came to, from the error of its activity; false if nobody knows.
func StepOf(err error) (deployments.StepOutput, bool) {
	out, ok := resultOf[deployments.StepOutput](err, deployments.ErrorStepFailed)
	return out, ok && out.Outcome != ""
}
