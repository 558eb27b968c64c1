package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// An error from an author's method is plain, unless it wraps one of the types of this file: a plain error means that
// what was asked for was refused and did not happen; it is shown and not retried.
//
// On a create, an error of any kind that comes with an id ends the step, and what exists goes into the state: if it
// were asked for again instead, it would be forgotten when the engine stops asking. On an update the state has it
// already, and NotDone and Unknown mean what they say.

// NotDone says that nothing happened and that trying again later may help: throttled, temporarily unavailable, not
// reached. On a create it comes without an id.
type NotDone struct {
	Err error
	// RetryAfter is the wait that the other side asked for; 0 leaves it to the engine.
	RetryAfter time.Duration
}

func (e *NotDone) Error() string { return e.Err.Error() }
func (e *NotDone) Unwrap() error { return e.Err }

// Unknown says that it may have happened and nobody heard: the connection was lost after the request was sent.
type Unknown struct {
	Err error
}

func (e *Unknown) Error() string { return e.Err.Error() }
func (e *Unknown) Unwrap() error { return e.Err }

// NotReady says that the resource exists as declared, and that something of it becomes true later: an address, a
// certificate. It comes with the outputs that are known and, on a create, with the id. Reconcile is called again After
// that, as an update without a change, until it returns no error; nothing waits meanwhile but what depends on the
// resource.
type NotReady struct {
	// For is what is awaited, as in "an address".
	For string
	// After is the pause; 0 is a second. The engine waits at most a minute at a time.
	After time.Duration
}

func (e *NotReady) Error() string { return "it waits for " + e.For }

// Foreign says that the physical thing exists and was not made for this resource, so it was left alone.
type Foreign struct {
	// Thing names it, as in "bucket site".
	Thing string
	// Owner is who it belongs to, empty when that is not known.
	Owner string
	// ID is what an import would name.
	ID string
}

func (e *Foreign) Error() string {
	owner := "was not made by this resource"
	if e.Owner != "" {
		owner = "belongs to " + e.Owner
	}
	return fmt.Sprintf("%s exists and %s; import it with the resource option import: %s, or choose another name",
		e.Thing, owner, e.ID)
}

// statusOf translates an author's error to the wire.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	var (
		notDone *NotDone
		unknown *Unknown
		foreign *Foreign
	)
	code := codes.Unknown
	switch {
	case errors.As(err, &notDone):
		return retryStatus(err, notDone.RetryAfter)
	case errors.As(err, &unknown):
		code = codes.Unavailable
	case errors.As(err, &foreign):
		code = codes.AlreadyExists
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	default:
		if s, ok := status.FromError(err); ok {
			return s.Err()
		}
	}
	return status.Error(code, err.Error())
}

func retryStatus(err error, after time.Duration) error {
	s := status.New(codes.ResourceExhausted, err.Error())
	if after <= 0 {
		return s.Err()
	}
	if detailed, derr := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); derr == nil {
		s = detailed
	}
	return s.Err()
}

// definite says whether the error is plain: known to be neither a lost outcome nor a matter of waiting.
func definite(err error) bool {
	var (
		notDone *NotDone
		unknown *Unknown
	)
	return !errors.As(err, &notDone) && !errors.As(err, &unknown) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// partialStatus tells the engine that the resource exists with this state but is not as declared, or not ready: then it
// also has a RetryInfo.
func partialStatus(id string, outputs, inputs *structpb.Struct, err error) error {
	details := []protoadapt.MessageV1{&pulumirpc.ErrorResourceInitFailed{
		Id: id, Properties: outputs, Inputs: inputs, Reasons: []string{err.Error()},
	}}
	var notReady *NotReady
	if errors.As(err, &notReady) {
		details = append(details, &errdetails.RetryInfo{
			RetryDelay: durationpb.New(cmp.Or(notReady.After, time.Second)),
		})
	}
	s, derr := status.New(codes.Unknown, err.Error()).WithDetails(details...)
	if derr != nil {
		return statusOf(err)
	}
	return s.Err()
}
