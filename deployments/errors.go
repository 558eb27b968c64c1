package deployments

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Code classifies an error by what its reader can do about it. Each edge translates codes in one table.
type Code string

// The codes.
const (
	CodeInvalid      Code = "invalid"         // the request itself is wrong
	CodeNotFound     Code = "not-found"       // what it names does not exist
	CodeExists       Code = "exists"          // it exists already
	CodeConflict     Code = "conflict"        // another update or writer has the stack
	CodeUnauthorized Code = "unauthorized"    // no or wrong credentials
	CodeForbidden    Code = "forbidden"       // these credentials do not allow it
	CodeUnavailable  Code = "unavailable"     // a part of the service cannot be reached; try again
	CodeNoWorker     Code = "no-worker"       // no worker took it; the same request continues to wait
	CodeFormat       Code = "format"          // stored by a newer version, or damaged
	CodeInternal     Code = "internal"        // a defect
	CodeCancelled    Code = "cancelled"       // ended on request
	CodeUnknown      Code = "unknown-outcome" // it may or may not have happened
	CodeUnconfirmed  Code = "unconfirmed"     // it would lose something, and was not confirmed
	CodeMaintenance  Code = "maintenance"     // an operator has stopped this for a time; see Mode
	CodeQuota        Code = "quota"           // the organization has used up what it may use; see Quota
)

// Error is an error with a code and a sentence that says what is wrong and what to do next.
type Error struct {
	Code    Code
	Message string
	Err     error // the cause, if any; Message includes its text
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error; the operand of a %w verb becomes its cause.
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// CodeOf returns the code of the first Error in the chain, "" for nil, and CodeInternal for any other error.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return CodeInternal
}

// CheckUTF8 refuses, as CodeInvalid, a text that is not UTF-8. The error does not have the text: it may be a secret.
func CheckUTF8[T string | []byte](what string, of T) error {
	if bytes, ok := any(of).([]byte); ok && utf8.Valid(bytes) {
		return nil // without a copy
	}
	text, at := string(of), 0
	if utf8.ValidString(text) {
		return nil
	}
	for r, size := utf8.DecodeRuneInString(text); r != utf8.RuneError || size != 1; {
		at += size
		r, size = utf8.DecodeRuneInString(text[at:])
	}
	return Errorf(CodeInvalid, "%s is not UTF-8 (its byte %d is 0x%02x): write it in UTF-8, or as base64 if it is no text",
		what, at+1, text[at])
}
