package fakeprovider

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The reasons in the ErrorInfo of an error that came without an answer. A refused connection never carried the request,
// so its error also has a RetryInfo; of a lost one nobody knows.
const (
	reasonRefused = "CONNECTION_REFUSED"
	reasonLost    = "CONNECTION_LOST"
)

// codeOf is what the cloud's statuses mean. 429 is never carried out, nor is 503 with a Retry-After (which becomes a
// RetryInfo); 500, 502, 503 and 504 leave it open.
var codeOf = map[int]codes.Code{
	http.StatusBadRequest:          codes.InvalidArgument,
	http.StatusUnauthorized:        codes.Unauthenticated,
	http.StatusForbidden:           codes.PermissionDenied,
	http.StatusNotFound:            codes.NotFound,
	http.StatusConflict:            codes.AlreadyExists,
	http.StatusTooManyRequests:     codes.ResourceExhausted,
	http.StatusInternalServerError: codes.Internal,
	http.StatusBadGateway:          codes.Unavailable,
	http.StatusServiceUnavailable:  codes.Unavailable,
	http.StatusGatewayTimeout:      codes.DeadlineExceeded,
}

// refused is the error of an answer that is not a success.
func refused(res *http.Response) error {
	var no struct{ Code, Message string }
	_ = json.NewDecoder(res.Body).Decode(&no) // not the cloud's own words: the status has to do
	code, known := codeOf[res.StatusCode]
	if !known {
		code = codes.Unknown
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{
		Reason: no.Code, Domain: "fakecloud", Metadata: map[string]string{"status": strconv.Itoa(res.StatusCode)}}}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		details = append(details, retryAfter(time.Duration(seconds)*time.Second))
	}
	return failure(code, "the cloud answered "+res.Status+": "+no.Message, details...)
}

// lost is the error of a request that got no whole answer.
func lost(ctx context.Context, err error) error {
	info := &errdetails.ErrorInfo{Reason: reasonLost, Domain: "fakecloud"}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failure(codes.DeadlineExceeded, "the cloud did not answer in time", info)
	case ctx.Err() != nil:
		return failure(codes.Canceled, "cancelled before the cloud answered", info)
	case errors.Is(err, syscall.ECONNREFUSED):
		info.Reason = reasonRefused
		return failure(codes.Unavailable, "the cloud cannot be reached: "+err.Error(), info, retryAfter(time.Second))
	}
	return failure(codes.Unavailable, "the connection to the cloud was lost: "+err.Error(), info)
}

// statusOf returns the status of the cloud's answer; 0 if there was none.
func statusOf(st *status.Status) int {
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			n, _ := strconv.Atoi(info.GetMetadata()["status"])
			return n
		}
	}
	return 0
}

func retryAfter(d time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
}

func notConfigured() error {
	return status.Error(codes.FailedPrecondition, "fake:endpoint is not set, and neither is FAKECLOUD_ENDPOINT")
}

func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }

func failure(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	plain := status.New(code, message)
	if full, err := plain.WithDetails(details...); err == nil {
		plain = full
	}
	return plain.Err()
}
