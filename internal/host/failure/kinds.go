package failure

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"go.temporal.io/sdk/temporal"
)

// serviceError marks an error of the service itself, to tell it from an error of a provider.
type serviceError struct{ err error }

func (e *serviceError) Error() string { return e.err.Error() }
func (e *serviceError) Unwrap() error { return e.err }

// Internal marks an error as one of the service, not of a provider.
func Internal(err error) error {
	if err == nil {
		return nil
	}
	return &serviceError{err}
}

// OfService returns the error of the service itself that err is, without its mark.
func OfService(err error) (own error, ok bool) {
	var e *serviceError
	if !errors.As(err, &e) {
		return nil, false
	}
	return e.err, true
}

// IsApplication reports whether err is an error of an activity already.
func IsApplication(err error) bool {
	var application *temporal.ApplicationError
	return errors.As(err, &application)
}

// IsType reports whether err is an error of an activity with a type.
func IsType(err error, kind string) bool {
	var application *temporal.ApplicationError
	return errors.As(err, &application) && application.Type() == kind
}

// Interrupted reports whether err is the end of the activity's context, rather than an answer of a provider or of the
// store.
func Interrupted(err error) bool {
	return temporal.IsCanceledError(err) || errors.Is(err, context.Canceled)
}

// Rejection reports whether an error means that the provider rejected the call without effect.
func Rejection(err error) (*temporal.ApplicationError, bool) {
	var application *temporal.ApplicationError
	if !errors.As(err, &application) {
		return nil, false
	}
	return application, application.Type() == deployments.ErrorNotDone ||
		application.Type() == deployments.ErrorThrottled
}
