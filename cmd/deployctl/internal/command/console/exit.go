package console

import (
	"errors"

	"github.com/deployctl/deployctl/deployments"
)

// The exit codes; ExitCodesHelp describes them.
const (
	exitFailed       = 1
	exitInvalid      = 2
	exitCancelled    = 3
	exitConflict     = 4
	exitUnavailable  = 5
	exitUnauthorized = 6
	ExitDetached     = 130
)

// ExitCodesHelp is the part of the help that describes the exit codes.
const ExitCodesHelp = `
EXIT CODES:
   0    done
   1    the update failed, or deployctl failed
   2    invalid input: wrong usage, a name that is unknown or taken, an invalid
        file, or a URN of --target or --replace that matches nothing
   3    cancelled, or you declined
   4    conflict: the stack is busy (--on-busy fail), or what was previewed or
        planned (--plan) does not hold any more
   5    the service, Temporal or S3 cannot be reached, or an operator has put
        the service into maintenance or read-only mode
   6    the service rejects your token, or what goes beyond the quota of its
        organization, or Temporal or S3 reject the service's credentials
   130  interrupted after you confirmed: the update continues (if it was just
        being submitted, check with deployctl attach)
`

// exitOf maps error codes to exit codes; any other code is exitFailed.
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
	deployments.CodeMaintenance:  exitUnavailable,
	deployments.CodeQuota:        exitUnauthorized,
	deployments.CodeUnauthorized: exitUnauthorized,
	deployments.CodeForbidden:    exitUnauthorized,
}

// reportedError ends the process with an exit code; its reason has been printed already.
type reportedError struct{ code int }

func (*reportedError) Error() string { return "the error has been reported" }

// Reported returns an error that ends the process with an exit code, once its reason has been printed.
func Reported(code int) error { return &reportedError{code} }

// Declined returns the error of a command whose question was not answered with yes, once it has said so.
func Declined() error { return Reported(exitCancelled) }

// ExitCode returns the exit code for the error of a command.
func ExitCode(err error) int {
	var reported *reportedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &reported):
		return reported.code
	case errors.Is(err, errInterrupted):
		return exitCancelled
	}
	if code, ok := exitOf[deployments.CodeOf(err)]; ok {
		return code
	}
	return exitFailed
}

// ExitOfEnd returns the error with which a command ends after its update has ended.
func ExitOfEnd(end deployments.UpdateInfo) error {
	switch end.Status {
	case deployments.StatusSucceeded:
		return nil
	case deployments.StatusCancelled:
		return Reported(exitCancelled)
	}
	if code, ok := exitOf[end.Code]; ok {
		return Reported(code)
	}
	return Reported(exitFailed)
}
