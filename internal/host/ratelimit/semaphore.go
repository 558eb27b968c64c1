package ratelimit

import (
	"context"
	"fmt"
	"time"
)

// Semaphore bounds the steps of an update that run at the same time.
type Semaphore chan struct{}

// NewSemaphore returns a semaphore that n steps can hold at a time.
func NewSemaphore(n int) Semaphore { return make(Semaphore, n) }

// Acquire waits until fewer than n steps hold the semaphore. It fails with Postponed, ErrCancelled, or the cause of
// ctx; then the step has had no effect.
func (s Semaphore) Acquire(ctx context.Context, cancelled <-chan struct{}) error {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case s <- struct{}{}:
		return nil
	case <-cancelled:
		return ErrCancelled
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		reason := fmt.Sprintf("it waits for its turn: %d steps run at a time", cap(s))
		return &Postponed{Reason: reason, After: time.Millisecond}
	}
}

// Release lets the next step run.
func (s Semaphore) Release() { <-s }
