package deployments

import (
	"errors"
	"fmt"
)

// Code classes an error by what its reader can do about it. Each edge translates codes in one table.
type Code string

// The codes.
const (
	CodeInvalid      Code = "invalid"         // the request is wrong as it stands
	CodeNotFound     Code = "not-found"       // what it names does not exist
	CodeExists       Code = "exists"          // what it makes exists
	CodeConflict     Code = "conflict"        // another update or writer is in the way
	CodeUnauthorized Code = "unauthorized"    // no or wrong credentials
	CodeForbidden    Code = "forbidden"       // these credentials may not
	CodeUnavailable  Code = "unavailable"     // a part of the service cannot be reached; try again
	CodeNoWorker     Code = "no-worker"       // no worker takes it up; the same request again goes on waiting
	CodeFormat       Code = "format"          // stored by a newer version, or damaged
	CodeInternal     Code = "internal"        // a defect
	CodeCancelled    Code = "cancelled"       // ended on request
	CodeUnknown      Code = "unknown-outcome" // it may or may not have happened
	CodeUnconfirmed  Code = "unconfirmed"     // it would lose something, and nobody has said that it may
)

// Error is an error with a code and a sentence that says what is wrong and what to do next.
type Error struct {
	Code    Code
	Message string
	Err     error // what caused it, if anything; Message tells of it already
}

// Error gives the sentence.
func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error; a %w verb's operand becomes part of the chain.
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// CodeOf gives the code of the first Error in the chain; CodeInternal if there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
