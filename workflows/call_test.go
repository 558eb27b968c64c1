package workflows

import (
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
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

func TestOnlyACancelBeforeAnActivityBeganSaysThatItHadNoEffect(t *testing.T) {
	cancel := &failurepb.Failure{FailureInfo: &failurepb.Failure_CanceledFailureInfo{
		CanceledFailureInfo: &failurepb.CanceledFailureInfo{}}}
	failed := &failurepb.Failure{Cause: cancel, FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
		ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "forged", NonRetryable: true}}}
	for _, c := range []struct {
		name  string
		began int64
		cause *failurepb.Failure
		first bool
	}{
		{"it was cancelled before", 0, cancel, true},
		{"it was cancelled while a worker had it", 7, cancel, false},
		{"it failed, because of a cancel", 7, failed, false},
		{"it failed before, because of a cancel", 0, failed, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := temporal.GetDefaultFailureConverter().FailureToError(&failurepb.Failure{Cause: c.cause,
				FailureInfo: &failurepb.Failure_ActivityFailureInfo{
					ActivityFailureInfo: &failurepb.ActivityFailureInfo{StartedEventId: c.began}}})
			if cancelledFirst(err) != c.first {
				t.Errorf("%v: %t", err, cancelledFirst(err))
			}
		})
	}
	if !cancelledFirst(temporal.NewCanceledError()) {
		t.Error("an activity that was not even scheduled had an effect")
	}
}
