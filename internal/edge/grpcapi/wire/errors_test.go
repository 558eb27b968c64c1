package wire

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// declared returns the codes of package deployments by the names of their constants.
func declared(t *testing.T) map[string]deployments.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../deployments/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]deployments.Code{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Code") {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found[spec.Names[0].Name] = deployments.Code(text)
		}
		return true
	})
	if len(found) < 10 {
		t.Fatalf("errors.go declares %v", found)
	}
	return found
}

func TestEveryCodeComesBackAsItWasSent(t *testing.T) {
	for name, code := range declared(t) {
		if statusOf[code] == codes.OK {
			t.Errorf("%s has no status in gRPC", name)
		}
		err := ToError(FromError(fmt.Errorf("submit: %w", deployments.Errorf(code, "what to do next"))))
		if deployments.CodeOf(err) != code || err.Error() != "submit: what to do next" {
			t.Errorf("%s came back as %s: %v", name, deployments.CodeOf(err), err)
		}
	}
}

// TestAStatusThatTheServiceDidNotMakeHasTheCodeOfItsKind reads what gRPC or a proxy answers, and what an older service
// without details did.
func TestAStatusThatTheServiceDidNotMakeHasTheCodeOfItsKind(t *testing.T) {
	for code, want := range map[codes.Code]deployments.Code{
		codes.Canceled: deployments.CodeCancelled, codes.Unknown: deployments.CodeInternal,
		codes.InvalidArgument: deployments.CodeInvalid, codes.DeadlineExceeded: deployments.CodeUnavailable,
		codes.NotFound: deployments.CodeNotFound, codes.AlreadyExists: deployments.CodeExists,
		codes.PermissionDenied: deployments.CodeForbidden, codes.ResourceExhausted: deployments.CodeInvalid,
		codes.FailedPrecondition: deployments.CodeConflict, codes.Aborted: deployments.CodeCancelled,
		codes.OutOfRange: deployments.CodeInternal, codes.Unimplemented: deployments.CodeFormat,
		codes.Internal: deployments.CodeInternal, codes.Unavailable: deployments.CodeUnavailable,
		codes.DataLoss: deployments.CodeFormat, codes.Unauthenticated: deployments.CodeUnauthorized,
	} {
		got := ToError(status.Error(code, "as it is"))
		if deployments.CodeOf(got) != want || got.Error() != "as it is" {
			t.Errorf("%s is read as %s: %v", code, deployments.CodeOf(got), got)
		}
		if err := status.Error(code, "as it is"); Answered(err) {
			t.Errorf("%s is taken for the service's own answer", code)
		}
	}
	if !Answered(FromError(deployments.Errorf(deployments.CodeUnavailable, "away"))) {
		t.Error("the service's own answer is not known as such")
	}
	if FromError(nil) != nil || ToError(nil) != nil {
		t.Error("no error is one")
	}
}

func TestAStreamThatTheOtherEndBrokeOffMayBeTriedAgain(t *testing.T) {
	const reset = "stream terminated by RST_STREAM with error code: "
	for _, err := range []error{status.Error(codes.Internal, reset+"INTERNAL_ERROR"),
		status.Error(codes.Canceled, reset+"CANCEL"), status.Error(codes.ResourceExhausted, reset+"ENHANCE_YOUR_CALM"),
		status.Error(codes.Unknown, reset+"0x99"), status.Error(codes.Unavailable, "error reading from server: EOF"),
		status.Error(codes.Internal, "server closed the stream without sending trailers")} {
		if got := ToError(err); deployments.CodeOf(got) != deployments.CodeUnavailable || errors.Is(got, context.Canceled) {
			t.Errorf("%v is read as %s", err, deployments.CodeOf(got))
		}
	}
	own := FromError(deployments.Errorf(deployments.CodeInternal, reset+"INTERNAL_ERROR"))
	if got := ToError(own); deployments.CodeOf(got) != deployments.CodeInternal {
		t.Errorf("the service's own answer is read as %s", deployments.CodeOf(got))
	}
}

func TestTheTextOfADefectStaysInside(t *testing.T) {
	err := ToError(FromError(errors.New("key=hunter2")))
	if deployments.CodeOf(err) != deployments.CodeInternal || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestAnEndedContextIsNoDefect(t *testing.T) {
	if err := ToError(status.Error(codes.Canceled, "context canceled")); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that its caller has ended is %v", err)
	}
	if code := status.Code(FromError(fmt.Errorf("list: %w", context.Canceled))); code != codes.Canceled {
		t.Error(code)
	}
}
