package activities

import (
	"context"
	"errors"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"go.temporal.io/sdk/temporal"
)

// retryable tells of each code whether the same activity may succeed when it runs again. What is not listed will not.
var retryable = map[deployments.Code]bool{
	deployments.CodeUnavailable: true,
}

// Failure is failure, for activities of other packages.
func Failure(err error) error { return failure(err) }

// failure translates an error of an activity for Temporal: its code becomes the type, and says whether it is retried.
// Errors that are made for Temporal, and ends of the context, stay as they are.
func failure(err error) error {
	var application *temporal.ApplicationError
	switch {
	case err == nil, errors.As(err, &application), temporal.IsCanceledError(err),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	code := deployments.CodeOf(err)
	return temporal.NewApplicationErrorWithOptions(err.Error(), string(code), temporal.ApplicationErrorOptions{
		NonRetryable: !retryable[code], Cause: err,
	})
}

// notDone says that a call had no effect and is to be made again, after a while if that is not zero.
func notDone(text string, after time.Duration) error {
	kind := deployments.ErrorNotDone
	if after > 0 {
		kind = deployments.ErrorThrottled
	}
	return temporal.NewApplicationErrorWithOptions(text, kind, temporal.ApplicationErrorOptions{NextRetryDelay: after})
}

// postponed says that an attempt ended before it asked the provider for anything. Another is to begin, after a while if that is
// not zero.
func postponed(text string, after time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(text, deployments.ErrorPostponed, temporal.ApplicationErrorOptions{NextRetryDelay: after})
}

// unknownOutcome says that a call may or may not have had its effect.
func unknownOutcome(text string) error {
	return temporal.NewNonRetryableApplicationError(text, deployments.ErrorUnknownOutcome, nil)
}

// notStarted says that this worker does not host the update.
func notStarted(text string) error {
	return temporal.NewNonRetryableApplicationError(text, deployments.ErrorNotStarted, nil)
}
