package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestEveryCodeComesBackAsItWasSent(t *testing.T) {
	for _, code := range []deployments.Code{
		deployments.CodeInvalid, deployments.CodeNotFound, deployments.CodeExists, deployments.CodeConflict,
		deployments.CodeUnauthorized,
		deployments.CodeForbidden, deployments.CodeUnavailable, deployments.CodeFormat, deployments.CodeInternal,
		deployments.CodeCancelled,
		deployments.CodeUnknown, deployments.CodeUnconfirmed,
	} {
		err := ToError(FromError(fmt.Errorf("submit: %w", deployments.Errorf(code, "what to do next"))))
		if deployments.CodeOf(err) != code || err.Error() != "submit: what to do next" {
			t.Errorf("%s came back as %s: %v", code, deployments.CodeOf(err), err)
		}
		if statusOf[code] == codes.OK {
			t.Errorf("%s is no error in gRPC", code)
		}
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
