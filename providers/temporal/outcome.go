package temporal

import (
	"errors"
	"fmt"

	"github.com/deployctl/deployctl/provider"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// outcome is what an error of a call says about what the call asked for.
type outcome int

const (
	refused outcome = iota // nothing was done, and nothing helps
	notDone                // nothing was done; later it may be
	unknown                // it may have been done
)

// outcomes are those of the codes; all others are refused. A connection that was not made has the code of one that was
// lost: both are Unavailable.
var outcomes = map[codes.Code]outcome{
	codes.Canceled:          unknown,
	codes.Unknown:           unknown,
	codes.DeadlineExceeded:  unknown,
	codes.Internal:          unknown,
	codes.Unavailable:       unknown,
	codes.DataLoss:          unknown,
	codes.Aborted:           notDone,
	codes.ResourceExhausted: notDone,
}

// failed is the error of a call, for people and for the engine. It does not wrap the status: the engine would take its
// code for one of the provider's own.
func (o *opened) failed(redact func(string) string, what string, err error) error {
	s := status.Convert(err)
	text := fmt.Sprintf("%s: %s", what, s.Message())
	switch s.Code() {
	case codes.PermissionDenied, codes.Unauthenticated:
		text = fmt.Sprintf("%s: the credentials may not do this (%s): %s", what, s.Code(), s.Message())
	}
	plain := errors.New(o.redactor.Replace(redact(text)))
	switch outcomes[s.Code()] {
	case notDone:
		return &provider.NotDone{Err: plain}
	case unknown:
		return &provider.Unknown{Err: plain}
	}
	return plain
}

func is(err error, code codes.Code) bool { return err != nil && status.Code(err) == code }
