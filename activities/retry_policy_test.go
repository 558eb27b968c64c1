package activities

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"go.temporal.io/sdk/temporal"
)

func retrying(text string) map[string]deployments.ConfigValue {
	return map[string]deployments.ConfigValue{stackkeys.Retry: {Value: text}}
}

func TestAStepFailsWhenItsProviderWasAskedAsOftenAsTheStackAllows(t *testing.T) {
	h := bench(t, retrying(`{"toy": {"attempts": 2}}`))
	busy := h.create(texts("name", "n", "do", "busy"))
	if _, err := h.step(busy, 1); errorType(err) != deployments.ErrorThrottled {
		t.Fatalf("the first attempt: %v", err)
	}
	busy = h.create(texts("name", "another", "do", "busy"))
	result, err := h.step(busy, 1)
	if err != nil || result.Outcome != engine.OutcomeFailed || !strings.Contains(result.Error, "slow down") ||
		!strings.Contains(result.Error, "asked 2 times") {
		t.Errorf("the second attempt: %+v %v", result, err)
	}
}

func TestAnAttemptThatDidNotGetItsTurnIsNotCounted(t *testing.T) {
	h := bench(t, retrying(`{"toy": {"attempts": 1}}`))
	s, err := h.acts.hosted(t.Context(), h.update, h.base)
	if err != nil {
		t.Fatal(err)
	}
	at := &attempt{session: s, step: engine.Step{Type: thingType},
		heartbeat: heartbeat.New(h.heart, nil, time.Minute)}
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
		config     map[string]deployments.ConfigValue
		says, want time.Duration
	}{
		"nothing else is said":   {nil, 0, first},
		"its provider says when": {nil, 3 * time.Second, 3 * time.Second},
		"its stack does":         {retrying(`{"toy": {"initial": "2s"}}`), 0, 0},
	} {
		h := bench(t, c.config)
		s, err := h.acts.hosted(t.Context(), h.update, h.base)
		if err != nil {
			t.Fatal(err)
		}
		at := &attempt{session: s, step: engine.Step{Type: thingType}, pause: first,
			heartbeat: heartbeat.New(h.heart, nil, time.Minute)}
		for nth := range 20 {
			reason, _ := failure.Rejection(failure.NotDone("slow down", c.says))
			_, err = at.rejected(t.Context(), reason)
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

func TestAStepThatWasLostTwiceRestsBeforeItIsBegunAgain(t *testing.T) {
	h := bench(t, nil)
	step := h.create(texts("name", "n"))
	_, err := h.step(step, 3)
	var postponed *temporal.ApplicationError
	if !errors.As(err, &postponed) || postponed.Type() != deployments.ErrorPostponed ||
		postponed.NextRetryDelay() != time.Second {
		t.Errorf("the third round: %v", err)
	}
	if result, err := h.step(step, 2); err != nil || result.Outcome != engine.OutcomeDone {
		t.Errorf("the second round: %+v %v", result, err)
	}
	for round, want := range map[int]time.Duration{1: 0, 2: 0, 3: time.Second, 5: 4 * time.Second,
		16: 64 * time.Second} {
		if got := rest(round); got != want {
			t.Errorf("before round %d it rests for %s", round, got)
		}
	}
}
