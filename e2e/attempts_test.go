package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestAStepThatIsRetriedTellsItsAttemptAndItsLastError(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{
		Name: "busy", Do: fakecloud.Fail, Op: fakecloud.Create, Object: "named-1", Status: 503, RetryAfter: 1,
		Message: "the cloud is full",
	}))
	up := s.start(t, "up", "--yes", "--skip-preview")
	up.says(t, "fake:index:Named named-1: attempt 3")
	up.says(t, ", last error: the cloud answered 503 Service Unavailable: the cloud is full")
	service, browser := s.status(t), s.browser(t)
	eventually(t, "the Web UI shows the attempt, when the next is due, and why the last one failed", func() bool {
		return slices.ContainsFunc(s.describe(t, "run/organization/"+projectName(t)+"/dev/1").PendingActivities,
			func(a pendingActivity) bool {
				why, _ := decoded(t, browser, service, a.LastFailure.EncodedAttributes)
				return a.Attempt > 2 && a.NextAttemptScheduleTime != "" && strings.Contains(why, "the cloud is full")
			})
	})
	must(t, s.cloud.Lift(t.Context(), "busy"))
	up.mustEnd(t, 0)
	s.asIfNothingHappened(t)
}

func TestAStackSaysHowOftenAProviderIsAsked(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	s.must(t, "config", "set", "deployctl:retry",
		`{"fake": {"attempts": 9}, "fake:index:Named": {"attempts": 2, "initial": "10ms"}}`)
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{
		Name: "busy", Do: fakecloud.Fail, Op: fakecloud.Create, Object: "named-1", Status: 429, Message: "slow down",
	}))
	s.fails(t, 1, []string{"slow down", "it was asked 2 times, which is all that deployctl:retry allows"}, "up",
		"--yes", "--skip-preview")
	faults, err := s.cloud.Faults(t.Context())
	must(t, err)
	if faults[0].Struck != 2 {
		t.Errorf("the provider was asked %d times", faults[0].Struck)
	}
	must(t, s.cloud.Lift(t.Context(), "busy"))
	s.update(t, "up")
	s.asIfNothingHappened(t)
}

func TestARetryPolicyThatCannotBeMeantEndsTheUpdateAtItsStart(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	s.must(t, "config", "set", "deployctl:retry", `{"fake": {"attempts": 2, "initial": "soon"}}`)
	says := []string{`deployctl:retry, the policy of "fake": initial must be a duration such as 500ms, 1s or 2m, not "soon"`}
	s.fails(t, 1, says, "preview")
	s.fails(t, 1, says, "up", "--yes", "--skip-preview")
	if found := s.objects(t); len(found) > 0 {
		t.Errorf("the cloud holds %v", found)
	}
	s.must(t, "config", "rm", "deployctl:retry")
	s.update(t, "up")
	s.asIfNothingHappened(t)
}

func TestAFlakyCloudIsOutlasted(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	for name, f := range map[string]fakecloud.Fault{
		"overloaded": {Status: 503, RetryAfter: 1, Seed: 1}, "throttled": {Status: 429, Seed: 2},
	} {
		f.Name, f.Do, f.Chance = name, fakecloud.Fail, 0.2
		must(t, s.cloud.Set(t.Context(), f))
	}
	s.update(t, "up")
	s.asIfNothingHappened(t)
	faults, err := s.cloud.Faults(t.Context())
	must(t, err)
	for _, f := range faults {
		if f.Struck == 0 {
			t.Errorf("it was never %s", f.Name)
		}
	}
}
