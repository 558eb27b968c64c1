package command

import (
	"errors"

	"github.com/deployctl/deployctl/deployments"
)

// The exit codes.
const (
	exitFailed       = 1
	exitInvalid      = 2
	exitCancelled    = 3
	exitConflict     = 4
	exitUnavailable  = 5
	exitUnauthorized = 6
	exitDetached     = 130
)

const exitCodesHelp = `
EXIT CODES:
   0    done
   1    the update failed, or deployctl did
   2    bad input: usage, an unknown or existing name, a file that is not valid,
        a URN of --target or --replace that names nothing
   3    cancelled, or declined at the question
   4    another update or writer is in the way (--on-busy fail)
   5    the service, or a part of it, cannot be reached
   6    the service does not accept the token, or a part of it its credentials
   130  interrupted after the yes: the update goes on, or may (see attach)
`

// exitOf is the table of codes; what is not in it is exitFailed.
var exitOf = map[deployments.Code]int{
	deployments.CodeInvalid:      exitInvalid,
	deployments.CodeNotFound:     exitInvalid,
	deployments.CodeExists:       exitInvalid,
	deployments.CodeFormat:       exitInvalid,
	deployments.CodeCancelled:    exitCancelled,
	deployments.CodeUnconfirmed:  exitInvalid,
	deployments.CodeConflict:     exitConflict,
	deployments.CodeUnavailable:  exitUnavailable,
	deployments.CodeNoWorker:     exitUnavailable,
	deployments.CodeUnauthorized: exitUnauthorized,
	deployments.CodeForbidden:    exitUnauthorized,
}

// toldError ends the process with a code; the user has been told why.
type toldError struct{ code int }

func (*toldError) Error() string { return "the user has been told" }

// ExitCode translates an error for the process's parent.
func ExitCode(err error) int {
	var told *toldError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &told):
		return told.code
	case errors.Is(err, errInterrupted):
		return exitCancelled
	}
	if code, ok := exitOf[deployments.CodeOf(err)]; ok {
		return code
	}
	return exitFailed
}

// exitOfEnd is how an update's end ends its command.
func exitOfEnd(end deployments.UpdateInfo) error {
	switch end.Status {
	case "succeeded":
		return nil
	case "cancelled":
		return &toldError{exitCancelled}
	}
	if code, ok := exitOf[end.Code]; ok {
		return &toldError{code}
	}
	return &toldError{exitFailed}
}
