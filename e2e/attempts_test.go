package e2e

import (
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

func TestAStepThatIsRetriedTellsItsAttemptAndItsLastError(t *testing.T) {
	t.Parallel()
	s := newStage(t, sharedHome(t))
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{
		Name: "busy", Do: fakecloud.Fail, Op: fakecloud.Create, Object: "named-1", Status: 503, RetryAfter: 1, Message: "the cloud is full",
	}))
	up := s.start(t, "up", "--yes", "--skip-preview")
	up.says(t, "fake:index:Named named-1: attempt 3, last error: ")
	up.says(t, "the cloud is full")
	must(t, s.cloud.Lift(t.Context(), "busy"))
	up.mustEnd(t, 0)
	s.asIfNothingHappened(t)
}
