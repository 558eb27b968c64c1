package recovery

import (
	"errors"
	"testing"

	"go.temporal.io/api/serviceerror"
)

func TestADeploymentThatAnotherWorkerMadeCurrentFirstIsNoWarning(t *testing.T) {
	if !overtaken(serviceerror.NewFailedPrecondition("conflict token mismatch")) {
		t.Error("it is one")
	}
	for _, err := range []error{nil, errors.New("away"), serviceerror.NewFailedPrecondition("not the manager")} {
		if overtaken(err) {
			t.Errorf("%v is none", err)
		}
	}
}
