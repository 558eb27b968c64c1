package activities

import (
	"context"
	"errors"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"go.temporal.io/sdk/temporal"
)

// retryable tells of each code whether the same activity may succeed when it runs again. What is not listed will not.
// Credentials that were refused have expired, or somebody changes them or what they may do: a running update waits
// for others.
var retryable = map[deployments.Code]bool{
	deployments.CodeNoWorker:    true,
	deployments.CodeUnavailable: true, deployments.CodeUnauthorized: true, deployments.CodeForbidden: true,
}

// storePasses tells of each code whether the store may answer otherwise after a while: with another one, it says
// something of the object itself. It is for calls whose values exist nowhere else.
var storePasses = map[deployments.Code]bool{
	deployments.CodeUnavailable: true, deployments.CodeUnauthorized: true, deployments.CodeForbidden: true,
	deployments.CodeInternal: true, deployments.CodeInvalid: true,
}

// mayPass tells whether an error is one that the store answers for reasons that may pass.
func mayPass(err error) bool {
	var answer *deployments.Error
	return errors.As(err, &answer) && storePasses[answer.Code]
}

// kept is failure for an activity that keeps what steps have done, which must not be lost: it is repeated until the
// store takes it.
func kept(err error) error {
	if !mayPass(err) {
		return failure(err)
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), string(deployments.CodeOf(err)),
		temporal.ApplicationErrorOptions{Cause: err})
}

// told is failure for an activity whose failure somebody waits for who can do something about it: credentials that
// are refused are said at once.
func told(err error) error {
	if statestore.CredentialsRefused(err) {
		return temporal.NewNonRetryableApplicationError(err.Error(), string(deployments.CodeOf(err)), err)
	}
	return failure(err)
}

const (
	// firstRetry and lastRetry bound the pauses between attempts to reach the store or a provider.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// persist makes a call again, after a growing pause, until it succeeds, fails for good, or ctx ends.
func persist(ctx context.Context, passes func(error) bool, call func() error) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := call()
		if err == nil || !passes(err) || pause(ctx, wait) != nil {
			return err
		}
	}
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
	return temporal.NewApplicationErrorWithOptions(head(err.Error(), maxText), string(code),
		temporal.ApplicationErrorOptions{
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

// postponed says that an attempt ended before it asked the provider for anything. Another is to begin, after a while if
// that is not zero.
func postponed(text string, after time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(text, deployments.ErrorPostponed,
		temporal.ApplicationErrorOptions{NextRetryDelay: after})
}

// unknownOutcome says that a call may or may not have had its effect.
func unknownOutcome(text string) error {
	return temporal.NewNonRetryableApplicationError(text, deployments.ErrorUnknownOutcome, nil)
}

// notStarted says that this worker does not host the update.
func notStarted(text string) error {
	return temporal.NewNonRetryableApplicationError(text, deployments.ErrorNotStarted, nil)
}
