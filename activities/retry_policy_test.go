package activities

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"go.temporal.io/sdk/temporal"
)

func retrying(text string) map[string]deployments.ConfigValue {
	return map[string]deployments.ConfigValue{retryKey: {Value: text}}
}

func TestTheMostExactNameOfARetryPolicyWins(t *testing.T) {
	retries, err := readRetries(retrying(`{"toy": {"attempts": 5, "initial": "2s", "backoff": 1.5, "longest": "1m"}, "` + thingType + `": {"attempts": 2}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]deployments.Retry{
		thingType:         {Attempts: 2},
		"toy:index:Other": {Attempts: 5, Initial: 2 * time.Second, Backoff: 1.5, Longest: time.Minute},
		"tin:index:Thing": {},
	} {
		if got := retries.Of(tokens.Type(name)); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestARetryPolicyThatCannotBeMeantIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		`five`:                                          "must be JSON like",
		`{"toy": 5}`:                                    `the policy of "toy"`,
		`{"toy": {"attempt": 5}}`:                       `unknown field "attempt"`,
		`{"toy": {"attempts": 0}}`:                      "attempts must be at least 1",
		`{"toy": {"backoff": 0.5}}`:                     "backoff must be at least 1",
		`{"toy": {"initial": "soon"}}`:                  `initial must be a duration such as 500ms, 1s or 2m, not "soon"`,
		`{"toy": {"longest": "-1s"}}`:                   `longest must be a duration`,
		`{"toy": {"initial": "2m", "longest": "1m"}}`:   "longest must not be shorter than initial",
		`{"a": {"attempts": 1}, "toy": {"initial": 1}}`: `the policy of "toy"`,
	} {
		_, err := readRetries(retrying(text))
		if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), retryKey) {
			t.Errorf("%s: %v", text, err)
		}
	}
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
		heartbeat: &heartbeater{heart: h.heart, timeout: time.Minute}}
	if _, ok := rejection(postponed("it waits for its turn", time.Millisecond)); ok {
		t.Error("a wait is taken for an answer of the provider")
	}
	reason, ok := rejection(notDone("connection refused", 0))
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
			heartbeat: &heartbeater{heart: h.heart, timeout: time.Minute}}
		for nth := range 20 {
			reason, _ := rejection(notDone("slow down", c.says))
			_, err = at.rejected(t.Context(), reason)
			want := c.want
			if want == first {
				want = min(first<<nth, 64*time.Second)
			}
			if next, ok := rejection(err); !ok || next.NextRetryDelay() != want {
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
