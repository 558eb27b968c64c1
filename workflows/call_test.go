package workflows

import (
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
)

func TestAnActivityWhoseWorkerIsGoneHasNotStartedWhateverFailedBefore(t *testing.T) {
	before := temporal.NewApplicationError("connection reset by peer", deployments.ErrorNotDone)
	for _, c := range []struct {
		name               string
		err                error
		neverStarted, lost bool
	}{
		{"it waited in vain", temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil), true, true},
		{"its second attempt waited in vain", temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, before),
			true, true},
		{"its worker said no more", temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, before), false, true},
		{"its worker is known to be gone", temporal.NewApplicationError("gone", deployments.ErrorNotStarted), true,
			true},
		{"it failed", before, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if neverStarted(c.err) != c.neverStarted || workerLost(c.err) != c.lost {
				t.Errorf("neverStarted %t, lost %t", neverStarted(c.err), workerLost(c.err))
			}
		})
	}
}
