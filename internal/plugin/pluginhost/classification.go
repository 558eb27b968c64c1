package pluginhost

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
)

// Outcome is what is known about the effect of a changing call.
type Outcome int

const (
	// Answered means that the change was made; the call has returned its result.
	Answered Outcome = iota
	// Exists means that the resource exists but failed to initialise; the call has returned its id and state, to which
	// the error's reasons belong.
	Exists
	// Failed means that the provider rejected the call or failed. By the contract of providers it has changed nothing, but
	// most answer every error so.
	Failed
	// NotDone means that the call never reached the provider or was throttled. It may be repeated after RetryAfter.
	NotDone
	// Unknown means that the change may or may not have been made. It must be settled before anything else happens to
	// the resource.
	Unknown
	// Unreadable means that the provider's answer cannot be used. Its effect stands, and a repeated call would get the
	// same answer.
	Unreadable
)

// String returns the outcome in words.
func (o Outcome) String() string {
	return [...]string{"answered", "exists, not initialised", "failed", "not done", "unknown", "unreadable"}[o]
}

// Classification is the meaning of a changing call's error.
type Classification struct {
	Outcome    Outcome
	RetryAfter time.Duration // with NotDone: the pause that the provider asked for, or 0
	Died       bool          // the provider's process has ended; Host.Provider starts another
	Reason     string        // the reason, for messages
	Code       codes.Code    // with Failed: that of the provider's answer; OK if it did not answer
}

// Classify classifies the error of a Create, Update or Delete.
func (p *Provider) Classify(err error) Classification {
	v := classify(err)
	lost := deliveryOf(err) == deliveryLost
	if lost {
		p.end.awaitDeath()
	}
	if v.Died = !p.Alive(); v.Died && lost {
		v.Reason = fmt.Sprintf("%s ended%s before it answered", p.end.name, p.end.exit())
	}
	return v
}

func classify(err error) Classification {
	if err == nil {
		return Classification{Outcome: Answered}
	}
	v := Classification{Reason: err.Error()}
	var initialisation *plugin.InitError
	var malformed *malformedResponse
	var answer *rpcerror.Error
	switch {
	case errors.As(err, &initialisation):
		v.Outcome = Exists
	case errors.As(err, &malformed):
		v.Outcome = Unreadable
	case errors.As(err, &answer):
		v.Outcome, v.RetryAfter = readStatus(answer)
		if v.Outcome == Failed && deliveryOf(answer) == deliveryAnswered {
			v.Code = answer.Code()
		}
	default: // an error without a status: the call could not be made
		v.Outcome = Failed
	}
	return v
}

// readStatus maps a gRPC status. Providers report ordinary errors with the code Unknown, so that code means Failed: the
// rest is in their text (internal/settle/errorclass).
func readStatus(e *rpcerror.Error) (Outcome, time.Duration) {
	switch deliveryOf(e) {
	case deliveryUnsent:
		return NotDone, 0
	case deliveryOversize:
		return Failed, 0
	case deliveryLost:
		if tooLarge(e) {
			return Unreadable, 0
		}
		return Unknown, 0
	}
	if tooLarge(e) {
		return Unreadable, 0
	}
	retryAfter, comeAgain := retryInfo(e)
	switch e.Code() {
	case codes.ResourceExhausted:
		return NotDone, retryAfter
	case codes.Unavailable:
		if comeAgain {
			return NotDone, retryAfter
		}
		return Unknown, 0
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.DataLoss:
		return Unknown, 0
	default:
		return Failed, 0
	}
}

// Throttled reports whether the provider throttled a call.
func Throttled(err error) bool {
	var answer *rpcerror.Error
	return errors.As(err, &answer) && answer.Code() == codes.ResourceExhausted && !tooLarge(answer)
}

// tooLarge reports whether gRPC itself, on either side, rejected a message for its size. It uses the same code as
// providers that throttle.
func tooLarge(e *rpcerror.Error) bool {
	return e.Code() == codes.ResourceExhausted && strings.Contains(e.Message(), "larger than max")
}

// TooLarge reports whether a call failed because of the size of a message: a repeated call would fail again.
func TooLarge(err error) bool {
	var answer *rpcerror.Error
	return errors.As(err, &answer) && tooLarge(answer)
}

// RetryAfter returns the delay that a provider asked for when it rejected a call; 0 if it named none.
func RetryAfter(err error) time.Duration {
	var answer *rpcerror.Error
	if !errors.As(err, &answer) {
		return 0
	}
	after, _ := retryInfo(answer)
	return after
}

// retryInfo returns the delay that the provider asked for; ok is false if it named none.
func retryInfo(e *rpcerror.Error) (after time.Duration, ok bool) {
	for _, detail := range e.Details() {
		if d, isRetry := detail.(*errdetails.RetryInfo); isRetry {
			return d.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}
