package wire

import (
	"context"
	"errors"
	"strings"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// statusOf is the table of codes: what every deployments.Code is in gRPC.
var statusOf = map[deployments.Code]codes.Code{
	deployments.CodeInvalid:      codes.InvalidArgument,
	deployments.CodeNotFound:     codes.NotFound,
	deployments.CodeExists:       codes.AlreadyExists,
	deployments.CodeConflict:     codes.FailedPrecondition,
	deployments.CodeUnauthorized: codes.Unauthenticated,
	deployments.CodeForbidden:    codes.PermissionDenied,
	deployments.CodeUnavailable:  codes.Unavailable,
	deployments.CodeNoWorker:     codes.Unavailable,
	deployments.CodeFormat:       codes.DataLoss,
	deployments.CodeInternal:     codes.Internal,
	deployments.CodeCancelled:    codes.Aborted,
	deployments.CodeUnknown:      codes.Unknown,
	deployments.CodeUnconfirmed:  codes.FailedPrecondition,
	deployments.CodeMaintenance:  codes.FailedPrecondition, // not Unavailable, which clients repeat
	deployments.CodeQuota:        codes.ResourceExhausted,
}

// codeOf reads a status that has no detail: one that gRPC or a proxy made itself.
var codeOf = map[codes.Code]deployments.Code{
	codes.InvalidArgument:    deployments.CodeInvalid,
	codes.NotFound:           deployments.CodeNotFound,
	codes.AlreadyExists:      deployments.CodeExists,
	codes.FailedPrecondition: deployments.CodeConflict,
	codes.Unauthenticated:    deployments.CodeUnauthorized,
	codes.PermissionDenied:   deployments.CodeForbidden,
	codes.Unavailable:        deployments.CodeUnavailable,
	codes.DeadlineExceeded:   deployments.CodeUnavailable,
	codes.ResourceExhausted:  deployments.CodeInvalid, // a message over the size limit
	codes.DataLoss:           deployments.CodeFormat,
	codes.Canceled:           deployments.CodeCancelled,
	codes.Aborted:            deployments.CodeCancelled,
	codes.Unimplemented:      deployments.CodeFormat,
}

// WaitingHeader is the header in which a service says, while a call goes on, which part of it does not answer.
const WaitingHeader = "deployctl-waiting"

// FromError converts an error to a gRPC status. An error without a code is a defect: its text, which may name anything,
// is left out, and the caller writes it to the service's log.
func FromError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	if _, isStatus := status.FromError(err); isStatus {
		return err
	}
	code, message := deployments.CodeInternal, "the service failed; its log says why"
	var known *deployments.Error
	if errors.As(err, &known) {
		code, message = known.Code, err.Error()
	}
	grpcCode, ok := statusOf[code]
	if !ok {
		grpcCode = codes.Internal
	}
	detailed, detailErr := status.New(grpcCode, message).WithDetails(&api.ErrorDetail{Code: string(code)})
	if detailErr != nil {
		return status.Error(grpcCode, message)
	}
	return detailed.Err()
}

// Answered tells whether an error is the service's own answer: others are made by gRPC, or by what is between.
func Answered(err error) bool {
	s, ok := status.FromError(err)
	return ok && len(s.Details()) > 0
}

// WithNote adds a note, in parentheses, to the message of a status.
func WithNote(err error, note string) error {
	p := status.Convert(err).Proto()
	p.Message += " (" + note + ")"
	return status.FromProto(p).Err()
}

// cutOff tells, by gRPC's text, whether a stream was ended without an answer by whoever has the other end of the
// connection, for which gRPC has many codes. One that is refused or at the end of a connection is unavailable anyway.
func cutOff(message string) bool {
	return strings.HasPrefix(message, "stream terminated by RST_STREAM") ||
		message == "server closed the stream without sending trailers"
}

// ToError reads a status as a *deployments.Error.
func ToError(err error) error {
	if err == nil {
		return nil
	}
	s, isStatus := status.FromError(err)
	if !isStatus {
		return err
	}
	code, ok := codeOf[s.Code()]
	if !ok {
		code = deployments.CodeInternal
	}
	for _, detail := range s.Details() {
		if d, is := detail.(*api.ErrorDetail); is {
			code = deployments.Code(d.GetCode())
		}
	}
	if len(s.Details()) == 0 && cutOff(s.Message()) {
		return &deployments.Error{Code: deployments.CodeUnavailable, Message: s.Message(), Err: err}
	}
	if s.Code() == codes.Canceled { // the caller went away, as without a network in between
		err = context.Canceled
	}
	return &deployments.Error{Code: code, Message: s.Message(), Err: err}
}
