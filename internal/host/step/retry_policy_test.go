package step

import (
	"context"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
)

// beating is a Temporal that accepts every heartbeat.
type beating struct{}

func (beating) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return nil }

// retrying are the steps of a stack with a retry policy.
func retrying(t *testing.T, policy string) *Steps {
	t.Helper()
	own, err := stackkeys.Read(func(key string) string {
		if key == stackkeys.Retry {
			return policy
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	return &Steps{own: own}
}

func TestAnAttemptThatDidNotGetItsTurnIsNotCounted(t *testing.T) {
	at := &attempt{session: retrying(t, `{"toy": {"attempts": 1}}`), step: engine.Step{Type: "toy:index:Thing"},
		heartbeat: heartbeat.New(beating{}, nil, time.Minute)}
	if _, ok := failure.Rejection(failure.Postponed("it waits for its turn", time.Millisecond)); ok {
		t.Error("a wait is taken for an answer of the provider")
	}
	reason, ok := failure.Rejection(failure.NotDone("connection refused", 0))
	if !ok {
		t.Fatal("a refused connection is not taken for an answer of the provider")
	}
	if result, err := at.rejected(t.Context(), reason); err != nil || result.Outcome != engine.OutcomeFailed {
		t.Errorf("%+v %v", result, err)
	}
}

func TestACallToASlowedAccountIsRepeatedWhenItsLimiterSays(t *testing.T) {
	const first = 250 * time.Millisecond
	for name, c := range map[string]struct {
		policy     string
		says, want time.Duration
	}{
		"nothing else is said":   {"", 0, first},
		"its provider says when": {"", 3 * time.Second, 3 * time.Second},
		"its stack does":         {`{"toy": {"initial": "2s"}}`, 0, 0},
	} {
		at := &attempt{session: retrying(t, c.policy), step: engine.Step{Type: "toy:index:Thing"}, pause: first,
			heartbeat: heartbeat.New(beating{}, nil, time.Minute)}
		for nth := range 20 {
			reason, _ := failure.Rejection(failure.NotDone("slow down", c.says))
			_, err := at.rejected(t.Context(), reason)
			want := c.want
			if want == first {
				want = min(first<<nth, 64*time.Second)
			}
			if next, ok := failure.Rejection(err); !ok || next.NextRetryDelay() != want {
				t.Errorf("%s, the %d. time: %v", name, nth+1, err)
			}
		}
	}
}

func TestTheRestBeforeARoundGrows(t *testing.T) {
	for round, want := range map[int]time.Duration{1: 0, 2: 0, 3: time.Second, 5: 4 * time.Second,
		16: 64 * time.Second} {
		if got := rest(round); got != want {
			t.Errorf("before round %d it rests for %s", round, got)
		}
	}
}

func TestOnlyAnUpdateOfAllResourcesRepeatsWhatAnEarlierOneBegan(t *testing.T) {
	repeat := &settlerule.Rule{Repeat: true}
	for _, c := range []struct {
		request deployments.UpdateRequest
		settles bool
	}{
		{deployments.UpdateRequest{Kind: engine.KindUp}, true},
		{deployments.UpdateRequest{Kind: engine.KindUp, Targets: []string{"x"}}, false},
		{deployments.UpdateRequest{Kind: engine.KindUp, Excludes: []string{"x"}}, false},
		{deployments.UpdateRequest{Kind: engine.KindRefresh}, false},
	} {
		at := &attempt{session: &Steps{request: c.request}}
		if at.settles(repeat, engine.Settle{}) != c.settles {
			t.Errorf("%+v", c.request)
		}
	}
}
