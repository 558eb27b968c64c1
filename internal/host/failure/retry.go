package failure

import (
	"context"
	"time"
)

// FirstRetry and LastRetry bound the pauses between attempts to reach the store or a provider.
const (
	FirstRetry = 50 * time.Millisecond
	LastRetry  = 5 * time.Second
)

// Persist repeats a call with a growing pause until it succeeds, fails for good, or ctx ends.
func Persist(ctx context.Context, passes func(error) bool, call func() error) error {
	for wait := FirstRetry; ; wait = min(2*wait, LastRetry) {
		err := call()
		if err == nil || !passes(err) || Pause(ctx, wait) != nil {
			return err
		}
	}
}

// Pause waits for a while, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
