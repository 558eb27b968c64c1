package fakeprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A manner is how errors are reported. By default the code of an error says what it means. Nearly every provider that
// people use answers each error with the code Unknown instead, and a text in the manner of its own.
var manners = map[string]func(failed) string{
	"bridged": func(f failed) string {
		text := fmt.Sprintf("%sing Fake %s (%s): operation error Fake: %s%s, ", strings.TrimSuffix(f.verb, "e"), f.kind,
			f.name, strings.ToUpper(f.verb[:1])+f.verb[1:], f.kind)
		switch {
		case f.status == 0 && f.code == codes.DeadlineExceeded:
			return text + "https response error StatusCode: 0, RequestID: , canceled, context deadline exceeded"
		case f.status == 0:
			return text + "https response error StatusCode: 0, RequestID: , request send failed, " + f.text
		case f.status >= 429:
			text += "exceeded maximum number of attempts, 3, "
		}
		return text + fmt.Sprintf("https response error StatusCode: %d, RequestID: 5d0c7a3e, api error %s: %s", f.status,
			f.named("ValidationException", "EntityAlreadyExists", "ThrottlingException", "InternalFailure"), f.text)
	},
	"google": func(f failed) string {
		text := fmt.Sprintf("Error %sing %s: ", strings.TrimSuffix(f.verb, "e"), f.kind)
		if f.status == 0 {
			return text + f.text
		}
		return text + fmt.Sprintf("googleapi: Error %d: %s, %s", f.status, f.text,
			f.named("badRequest", "alreadyExists", "rateLimitExceeded", "backendError"))
	},
	"kubernetes": func(f failed) string {
		switch f.status {
		case 0:
			return f.text
		case 409:
			return fmt.Sprintf("%ss.fake %q already exists", strings.ToLower(f.kind), f.name)
		case 429:
			return "Too many requests, please try again later."
		case 500, 502:
			return "Internal error occurred: " + f.text
		case 503:
			return "the server is currently unable to handle the request"
		case 504:
			return "the server was unable to return a response in the time allotted, but may still be processing the request"
		}
		return fmt.Sprintf("%s.fake %q is invalid: %s", f.kind, f.name, f.text)
	},
	"native": func(f failed) string {
		code := f.named("InvalidRequest", "AlreadyExists", "Throttling", "ServiceInternalError")
		switch f.status {
		case 0:
			code = "NetworkFailure"
		case 503:
			code = "GeneralServiceException"
		case 504:
			code = "ServiceTimeout"
		}
		return fmt.Sprintf("operation %s failed with %q: %s", strings.ToUpper(f.verb), code, f.text)
	},
}

// failed is a request of a resource that failed.
type failed struct {
	verb, kind, name, text string
	code                   codes.Code
	status                 int // of the cloud's answer; 0: there was none
}

// named is a name of the error: of a bad request, a conflict, a throttled request, or a failure of the cloud.
func (f failed) named(bad, conflict, throttled, broken string) string {
	switch {
	case f.status == 409:
		return conflict
	case f.status == 429:
		return throttled
	case f.status >= 500:
		return broken
	}
	return bad
}

// reported is an error as the provider's manner reports it.
func (f *fake) reported(verb, kind, name string, err error) error {
	manner := manners[f.manner]
	var full interface{ GRPCStatus() *status.Status }
	if err == nil || manner == nil || !errors.As(err, &full) {
		return err
	}
	st := full.GRPCStatus()
	_, said, _ := strings.Cut(st.Message(), ": ")
	e := failed{verb, kind, name, said, st.Code(), statusOf(st)}
	return errors.New(manner(e))
}

// create sends the request of a create. Bridged providers repeat it themselves if the cloud fails or does not answer:
// if the first try had its effect, the second one is told that the thing exists. Of what has no name it would make
// another, which no engine can know of, so those are sent once.
func (f *fake) create(ctx context.Context, k kind, req request, made *object) error {
	err := f.cloud.call(ctx, req, made)
	if f.manner != "bridged" || k.naming == server || ctx.Err() != nil {
		return err
	}
	if st, ok := status.FromError(err); !ok || err == nil || statusOf(st) != 0 && statusOf(st) < 500 {
		return err
	}
	return f.cloud.call(ctx, req, made)
}
