// Package failure makes what activities answer fit for Temporal: errors that say by their type what has happened and
// whether it may be repeated, and texts of providers without secrets and of a bounded length.
package failure

import (
	"context"
	"errors"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// retryableCodes lists the codes with which the same activity may succeed when it runs again. Refused credentials are
// among them: a running update waits until they are renewed or their permissions are corrected.
var retryableCodes = map[deployments.Code]bool{
	deployments.CodeNoWorker:    true,
	deployments.CodeUnavailable: true, deployments.CodeUnauthorized: true, deployments.CodeForbidden: true,
}

// Retryable reports whether the same activity may succeed when it runs again.
func Retryable(err error) bool { return retryableCodes[deployments.CodeOf(err)] }

// storePasses lists the store's codes that may pass; any other code is about the object itself. It is used for calls
// whose values exist nowhere else.
var storePasses = map[deployments.Code]bool{
	deployments.CodeUnavailable: true, deployments.CodeUnauthorized: true, deployments.CodeForbidden: true,
	deployments.CodeInternal: true, deployments.CodeInvalid: true,
}

// MayPass reports whether an error comes from the store for a reason that may pass.
func MayPass(err error) bool {
	var answer *deployments.Error
	return errors.As(err, &answer) && storePasses[answer.Code]
}

// UntilStored is Of for an activity that stores the results of steps, which must not be lost: the activity is repeated
// until the store accepts them.
func UntilStored(err error) error {
	if !MayPass(err) {
		return Of(err)
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), string(deployments.CodeOf(err)),
		temporal.ApplicationErrorOptions{Cause: err})
}

// AtOnce is Of for an activity whose caller waits for the result and can act on it: refused credentials fail at once
// instead of being retried.
func AtOnce(err error) error {
	if bucket.CredentialsRefused(err) {
		return temporal.NewNonRetryableApplicationError(err.Error(), string(deployments.CodeOf(err)), err)
	}
	return Of(err)
}

// Of translates an error of an activity for Temporal: the code becomes the type and decides whether Temporal retries.
// Temporal's own errors and those of an ended context stay as they are.
func Of(err error) error {
	var application *temporal.ApplicationError
	switch {
	case err == nil, errors.As(err, &application), temporal.IsCanceledError(err),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	code := deployments.CodeOf(err)
	return temporal.NewApplicationErrorWithOptions(Head(err.Error(), MaxText), string(code),
		temporal.ApplicationErrorOptions{
			NonRetryable: !retryableCodes[code], Cause: err,
		})
}

// NotDone is the error of a call that had no effect and is to be repeated; after, if not zero, is the delay that the
// provider asked for.
func NotDone(text string, after time.Duration) error {
	kind := deployments.ErrorNotDone
	if after > 0 {
		kind = deployments.ErrorThrottled
	}
	return temporal.NewApplicationErrorWithOptions(text, kind, temporal.ApplicationErrorOptions{NextRetryDelay: after})
}

// Postponed is the error of an attempt that ended before it called the provider. The next attempt starts after the
// delay, if that is not zero.
func Postponed(text string, after time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(text, deployments.ErrorPostponed,
		temporal.ApplicationErrorOptions{NextRetryDelay: after})
}

// Later is the error of an activity that gives up its place in the worker and comes back after a pause, which grows
// with its attempts from a second to the longest one.
func Later(ctx context.Context, why string, longest time.Duration) error {
	pause := min(time.Duration(activity.GetInfo(ctx).Attempt)*time.Second, longest)
	return temporal.NewApplicationErrorWithOptions(why, deployments.ErrorPostponed, temporal.ApplicationErrorOptions{
		NextRetryDelay: pause, Category: temporal.ApplicationErrorCategoryBenign})
}

// UnknownOutcome is the error of a call that may or may not have had its effect.
func UnknownOutcome(text string) error {
	return temporal.NewNonRetryableApplicationError(text, deployments.ErrorUnknownOutcome, nil)
}

// NotStarted is the error of a worker that does not host the update.
func NotStarted(text string) error {
	return temporal.NewNonRetryableApplicationError(text, deployments.ErrorNotStarted, nil)
}

// StepNotStarted is that of a step. Its detail says, sealed, which attempt had no effect: recovery believes no type of
// an error, since whoever can use the Temporal namespace can end an activity with any.
func StepNotStarted(text string, in deployments.StepInput) error {
	var of deployments.StepOutput
	of.Op, of.Attempt = in.Step.Op, in.Attempt()
	return temporal.NewNonRetryableApplicationError(text, deployments.ErrorNotStarted, nil, of)
}
