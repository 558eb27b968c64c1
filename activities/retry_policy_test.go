package activities

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
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
}
