package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/deployctl/deployctl/provider"
)

// outcome says what an error of a call means for what the call asked for: see the errors of package provider.
func outcome(err error) error {
	var (
		response *awshttp.ResponseError
		unsent   *smithyhttp.RequestSendError
		dial     *net.OpError
	)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &response) && response.HTTPStatusCode() != 0:
		return byStatus(response, err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return &provider.NotDone{Err: err}
	case errors.As(err, &unsent), errors.As(err, &response): // despite its name, the answer is what may be missing
		return &provider.Unknown{Err: err}
	}
	return err
}

// unlessUnknown keeps the AWS SDK from sending a request again that may have had its effect: the error of the last
// attempt, which is all that comes back, would say nothing of it.
func unlessUnknown(err error) aws.Ternary {
	var unknown *provider.Unknown
	if errors.As(outcome(err), &unknown) {
		return aws.FalseTernary
	}
	return aws.UnknownTernary
}

// failed says which call an error is of, and what it means.
func failed(what string, err error) error {
	var foreign *provider.Foreign
	if errors.As(err, &foreign) { // names what by itself
		return err
	}
	return fmt.Errorf("%s: %w", what, outcome(err))
}

func byStatus(response *awshttp.ResponseError, err error) error {
	switch response.HTTPStatusCode() {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return &provider.NotDone{Err: err, RetryAfter: retryAfter(response)}
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return &provider.Unknown{Err: err}
	}
	return err
}

func retryAfter(response *awshttp.ResponseError) time.Duration {
	if response.Response == nil {
		return 0
	}
	seconds, err := strconv.Atoi(response.Response.Header.Get("Retry-After"))
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// notKept says whether a server accepts something and does not keep it.
func notKept(err error) bool {
	var dropped *provider.NotKept
	return errors.As(err, &dropped)
}

// is says whether the server answered with one of the codes.
func is(err error, codes ...string) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	for _, code := range codes {
		if api.ErrorCode() == code {
			return true
		}
	}
	return false
}

// absent says whether the server answered that there is no such bucket or object.
func absent(err error) bool { return is(err, "NotFound", "NoSuchBucket", "NoSuchKey") }

// unsupported says whether the server answered that it does not know such a request.
func unsupported(err error) bool { return is(err, "NotImplemented", "MethodNotAllowed") }

// definite says whether an error of failed leaves no doubt that nothing was done, and waiting would not help.
func definite(err error) bool {
	var (
		notDone *provider.NotDone
		unknown *provider.Unknown
	)
	return !errors.As(err, &notDone) && !errors.As(err, &unknown) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// forbidden says whether the server answered that this is none of the caller's business.
func forbidden(err error) bool { return is(err, "Forbidden", "AccessDenied") }
