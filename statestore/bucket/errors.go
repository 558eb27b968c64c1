package bucket

import (
	"context"
	"errors"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
)

// Failed returns an error of the objects with a code and with what was being done. ErrAbsent and ErrChanged stay in the
// chain.
func Failed(err error, doing string) error {
	if err == nil {
		return nil
	}
	var e *deployments.Error
	switch {
	case errors.As(err, &e):
		return &deployments.Error{Code: e.Code, Message: doing + ": " + e.Message, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.Is(err, ErrAbsent):
		return deployments.Errorf(deployments.CodeNotFound, "%s: %w", doing, err)
	case errors.Is(err, ErrChanged):
		return deployments.Errorf(deployments.CodeConflict, "%s: %w", doing, err)
	case errors.Is(err, ErrTransient):
		return deployments.Errorf(deployments.CodeUnavailable, "%s: %w", doing, err)
	}
	return deployments.Errorf(deployments.CodeInternal, "%s: %w", doing, err)
}

// Unreadable returns an error that concerns one object, which is damaged or foreign, and not the store; else nil. A
// list reports such an object and shows the others.
func Unreadable(err error) error {
	if code := deployments.CodeOf(err); err != nil && (code == deployments.CodeFormat ||
		code == deployments.CodeInvalid) {
		return err
	}
	return nil
}

// Damaged returns the error about an object that cannot be parsed.
func Damaged(key string, err error) error {
	if Interrupted(err) {
		return Failed(err, "read "+key)
	}
	return deployments.Errorf(deployments.CodeFormat, "%s is damaged: %w; put back the last good copy of this object",
		key, err)
}

// Interrupted reports whether something was not read for want of memory or time, so that nothing is wrong with it.
func Interrupted(err error) bool {
	return errors.Is(err, mempool.ErrBusy) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}
