package ratelimit

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// maxWait bounds a wait: it counts towards the timeout of the step, which has a minute to spare.
	maxWait = 20 * time.Second
	// maxDebt is how far scheduled calls go into debt, as the time in which their tokens come back. It bounds how long
	// they stand aside for prompt calls, and once the account throttles one: tokens that they should have taken may be
	// those of another worker.
	maxDebt = 2 * time.Second
	// forgetAfter is how long after the last decrease an account is unlimited again.
	forgetAfter = 5 * time.Minute
	// retryAfter is when a prompt call that was throttled is repeated once its account has a rate. The pause is doubled
	// each time, at most maxDoublings times, so that a call that is never accepted does not use up the rate.
	retryAfter, maxDoublings = 250 * time.Millisecond, 8
	// Scheduled calls queue while fewer than minQueue of them do, or fewer than go in queueTime. The others are
	// postponed, for maxPostponed at most.
	minQueue, queueTime, maxPostponed = 8, 2 * time.Second, 2 * time.Minute
)

// ErrCancelled is the end of a wait whose caller was cancelled.
var ErrCancelled = errors.New("cancelled while waiting")

// Postponed is the end of a wait that takes too long: the caller gives up its place in the worker, and comes back.
type Postponed struct {
	Reason string
	After  time.Duration
}

// Error returns the reason.
func (p *Postponed) Error() string { return p.Reason }

// Limiter limits the calls to one account. It has a rate for each of two classes: prompt calls, which a person waits
// for, and scheduled ones. Scheduled calls leave room: they use only a part of what their account accepts, and less
// while prompt calls are made. A nil Limiter lets every call through.
type Limiter struct {
	mu                sync.Mutex
	prompt, scheduled class
	// reserved is when the last postponed call comes back.
	reserved time.Time
	created  time.Time
}

func newLimiter() *Limiter {
	return &Limiter{
		created:   time.Now(),
		prompt:    class{decreaseFactor: 0.9, increaseFactor: 1.08},
		scheduled: class{decreaseFactor: 0.5, increaseFactor: 1.02},
	}
}

// Wait waits until a call may be made. It fails with Postponed, ErrCancelled, or the cause of ctx.
func (l *Limiter) Wait(ctx context.Context, cancelled <-chan struct{}, scheduled bool) error {
	const busy = "its account takes no more calls for now"
	turn, after := l.enqueue(scheduled)
	switch {
	case after > 0:
		return &Postponed{Reason: busy, After: after}
	case turn == nil:
		return nil
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	var err error
	select {
	case <-turn:
		return nil
	case <-cancelled:
		err = ErrCancelled
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = &Postponed{Reason: busy, After: time.Millisecond}
	}
	l.leave(turn)
	return err
}

// enqueue returns nil and 0 for a call that may be made at once, a channel that is closed when it may be made, or the
// time after which a call that is postponed comes back.
func (l *Limiter) enqueue(scheduled bool) (turn chan struct{}, after time.Duration) {
	if l == nil {
		return nil, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.prompt
	if scheduled {
		c = &l.scheduled
	} else {
		l.scheduled.debit(1)
	}
	switch {
	case c.allow():
		return nil, 0
	case scheduled && float64(len(c.waiting)) >= max(minQueue, queueTime.Seconds()*c.rate):
		return nil, l.reserve(time.Now())
	}
	turn = make(chan struct{})
	c.waiting = append(c.waiting, turn)
	c.release(&l.mu)
	return turn, 0
}

// reserve returns when a postponed call comes back. Calls come back one after another at the current rate: if all came
// back at once, most would be postponed again. Beyond maxPostponed the times start over.
func (l *Limiter) reserve(now time.Time) time.Duration {
	if first := now.Add(queueTime); l.reserved.Before(first) || l.reserved.After(now.Add(maxPostponed)) {
		l.reserved = first
	}
	l.reserved = l.reserved.Add(time.Duration(float64(time.Second) / l.scheduled.rate))
	return l.reserved.Sub(now)
}

// leave takes a call out of its queue.
func (l *Limiter) leave(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range []*class{&l.prompt, &l.scheduled} {
		c.waiting = slices.DeleteFunc(c.waiting, func(other chan struct{}) bool { return other == turn })
	}
}

// Observe takes in whether the account throttled a call. A prompt call that was throttled slows scheduled calls down,
// too. For a throttled call, Observe returns the pause before the first repetition (see Backoff), or 0 if the caller's
// retry policy decides.
func (l *Limiter) Observe(scheduled, throttled bool) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !scheduled {
		l.prompt.observe(throttled)
	}
	if scheduled || throttled && l.scheduled.accepted > 0 {
		l.scheduled.observe(throttled)
		if throttled {
			l.scheduled.debit(math.Inf(1))
		}
	}
	if throttled && !scheduled && l.prompt.rate > 0 {
		return retryAfter
	}
	return 0
}

// Backoff returns the pause before repetition n, counted from 1, of a call for which Observe returned first.
func Backoff(first time.Duration, n int) time.Duration { return first << min(n-1, maxDoublings) }

// idle reports whether the account has not been called for so long that its calls are unlimited again.
func (l *Limiter) idle(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range []*class{&l.prompt, &l.scheduled} {
		if len(c.waiting) > 0 || now.Sub(c.window) < forgetAfter || now.Sub(c.lastDecrease) < forgetAfter {
			return false
		}
	}
	return now.Sub(l.created) >= forgetAfter
}
