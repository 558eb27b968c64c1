package worker

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"github.com/deployctl/deployctl/statestore/seal"
)

func TestWhyAnAttemptFailedIsSealed(t *testing.T) {
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	o, err := Temporal{}.options(Config{}, keys)
	if err != nil {
		t.Fatal(err)
	}
	failed := temporal.NewApplicationErrorWithOptions("the quota of Contoso is used up", "Throttled",
		temporal.ApplicationErrorOptions{
			Cause: errors.New("Contoso said so"),
		})
	there := converter.WithFailureConverterSerializationContext(o.FailureConverter,
		converter.WorkflowSerializationContext{WorkflowID: "run/o/p/s/1"})
	failure := there.ErrorToFailure(failed)
	wire, err := proto.Marshal(failure)
	if err != nil || bytes.Contains(wire, []byte("Contoso")) {
		t.Errorf("readable: %v %v", failure, err)
	}
	if back := there.FailureToError(failure); !strings.Contains(back.Error(), "the quota of Contoso") {
		t.Errorf("came back as %v", back)
	}
}
