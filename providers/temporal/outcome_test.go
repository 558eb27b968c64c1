package temporal

import (
	"errors"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/provider"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestACodeSaysWhetherACallMayHaveHadItsEffect has each code of gRPC.
func TestACodeSaysWhetherACallMayHaveHadItsEffect(t *testing.T) {
	want := map[codes.Code]outcome{
		codes.Canceled: unknown, codes.Unknown: unknown, codes.InvalidArgument: refused, codes.DeadlineExceeded: unknown,
		codes.NotFound: refused, codes.AlreadyExists: refused, codes.PermissionDenied: refused,
		codes.ResourceExhausted: notDone, codes.FailedPrecondition: refused, codes.Aborted: notDone,
		codes.OutOfRange: refused, codes.Unimplemented: refused, codes.Internal: unknown, codes.Unavailable: unknown,
		codes.DataLoss: unknown, codes.Unauthenticated: refused,
	}
	o := &opened{redactor: redaction.New([]string{"key-of-the-server"})}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		err := o.failed(unchanged, "schedule a/b", status.Error(code, "it says key-of-the-server"))
		var (
			later *provider.NotDone
			lost  *provider.Unknown
			is    outcome
		)
		switch {
		case errors.As(err, &later):
			is = notDone
		case errors.As(err, &lost):
			is = unknown
		}
		if expected, ok := want[code]; !ok || is != expected {
			t.Errorf("%s is %d, not %d", code, is, expected)
		}
		if strings.Contains(err.Error(), "key-of-the-server") {
			t.Errorf("%s tells a secret: %v", code, err)
		}
		if _, ok := status.FromError(err); ok {
			t.Errorf("%s goes to the engine as a status of the provider", code)
		}
		forbidden := code == codes.PermissionDenied || code == codes.Unauthenticated
		if strings.Contains(err.Error(), "may not do this") != forbidden {
			t.Errorf("%s says: %v", code, err)
		}
	}
}
