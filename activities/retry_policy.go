package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/host/stackconfig"
	"go.temporal.io/sdk/temporal"
)

// retryKey is the configuration key of the stack's retry policies, by package or type: {"aws": {"attempts": 5,
// "initial": "1s", "backoff": 2, "longest": "1m"}}.
const retryKey = "deployctl:retry"

// readRetries reads the stack's configuration of retries.
func readRetries(config stackconfig.Config) (deployments.Retries, error) {
	text := config[retryKey].Value
	if text == "" {
		return nil, nil
	}
	var written map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &written); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			`configuration %s must be JSON like `+
				`{"PACKAGE or TYPE": {"attempts": 5, "initial": "1s", "backoff": 2, "longest": "1m"}}: %w`, retryKey,
			err)
	}
	retries := deployments.Retries{}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		policy, err := readRetry(written[name])
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "configuration %s, the policy of %q: %w", retryKey,
				name, err)
		}
		retries[name] = policy
	}
	return retries, nil
}

// readRetry reads one policy and rejects values that Temporal would reject.
func readRetry(text json.RawMessage) (policy deployments.Retry, err error) {
	var written struct {
		Attempts *int     `json:"attempts"`
		Initial  string   `json:"initial"`
		Backoff  *float64 `json:"backoff"`
		Longest  string   `json:"longest"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&written); err != nil {
		return policy, fmt.Errorf("it has attempts, initial, backoff and longest, and nothing else: %w", err)
	}
	if written.Attempts != nil {
		if policy.Attempts = *written.Attempts; policy.Attempts < 1 {
			return policy, fmt.Errorf("attempts must be at least 1, not %d; without it they go on for ever",
				policy.Attempts)
		}
	}
	if written.Backoff != nil {
		if policy.Backoff = *written.Backoff; policy.Backoff < 1 {
			return policy, fmt.Errorf("backoff must be at least 1, not %v", policy.Backoff)
		}
	}
	if policy.Initial, err = readPause("initial", written.Initial); err != nil {
		return policy, err
	}
	if policy.Longest, err = readPause("longest", written.Longest); err != nil {
		return policy, err
	}
	if policy.Longest > 0 && policy.Longest < policy.Initial {
		return policy, errors.New("longest must not be shorter than initial")
	}
	return policy, nil
}

func readPause(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond {
		return 0, fmt.Errorf("%s must be a duration such as 500ms, 1s or 2m, not %q", field, text)
	}
	return d, nil
}

// rejected ends an attempt whose call the provider rejected without effect. The step is repeated after the delay that
// the provider, or else the stack's policy, or else the account's limiter sets; it fails once the policy allows no more
// attempts. Temporal's count of attempts cannot be used: it includes attempts that only waited for their turn.
func (at *attempt) rejected(ctx context.Context, err *temporal.ApplicationError) (engine.StepFinished, error) {
	policy := at.session.retries.Of(at.step.Type)
	if policy == (deployments.Retry{}) && err.NextRetryDelay() == 0 && at.pause > 0 {
		n := at.heartbeat.rejected(ctx)
		return engine.StepFinished{}, notDone(err.Message(), ratelimit.Backoff(at.pause, n))
	}
	allowed := policy.Attempts
	if allowed == 0 {
		return engine.StepFinished{}, err
	}
	if n := at.heartbeat.rejected(ctx); n < allowed {
		return engine.StepFinished{}, err
	}
	result := failed(fmt.Sprintf("%s; it was asked %d times, which is all that %s allows", err.Message(), allowed,
		retryKey))
	result.Evidence = at.evidence
	return result, nil
}

// rejection reports whether an error means that the provider rejected the call without effect.
func rejection(err error) (*temporal.ApplicationError, bool) {
	var application *temporal.ApplicationError
	if !errors.As(err, &application) {
		return nil, false
	}
	return application, application.Type() == deployments.ErrorNotDone ||
		application.Type() == deployments.ErrorThrottled
}
