package stackkeys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

func readRetries(text string) (deployments.Retries, error) {
	var written map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &written); err != nil {
		return nil, fmt.Errorf("it must be JSON like "+
			`{"PACKAGE or TYPE": {"attempts": 5, "initial": "1s", "backoff": 2, "longest": "1m"}}: %w`, err)
	}
	retries := deployments.Retries{}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		policy, err := readRetry(written[name])
		if err != nil {
			return nil, fmt.Errorf("the policy of %q: %w", name, err)
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
