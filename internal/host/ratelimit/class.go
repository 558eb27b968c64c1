package ratelimit

import (
	"math"
	"sync"
	"time"
)

const (
	// window is the time over which accepted and throttled calls are counted.
	window = time.Second
	// An unlimited account gets a rate when it throttles at least firstThrottled calls of a window and one in
	// firstTolerated. An account with a rate is slowed down from laterThrottled calls and one in laterTolerated. Fewer
	// are noise, which retries cover.
	firstTolerated, laterTolerated = 5, 30
	firstThrottled, laterThrottled = 4, 1
	// The rate rises after a window without throttled calls in which at least the part minUsed of it was used. When more
	// calls are throttled than accepted, at most the part maxKept of it is left, but never less than minRate a second.
	minUsed, maxKept, minRate = 0.8, 0.5, 2
)

// class is the calls to an account that have the same priority. The Limiter's mutex guards it.
type class struct {
	// The rate is multiplied by decreaseFactor after a window with too many throttled calls, and by increaseFactor after
	// a window with none.
	decreaseFactor, increaseFactor float64

	rate         float64 // calls a second; 0: unlimited
	lastDecrease time.Time
	// tokens are the calls that may be made at once, as of refilled; a debt if negative.
	tokens   float64
	refilled time.Time
	// waiting has a channel for each call that waits, in order. It is closed when the call may be made.
	waiting []chan struct{}
	timer   *time.Timer

	window              time.Time // when the current window began
	accepted, throttled int       // calls in it
}

// allow takes a token for a call that may be made at once. It returns false when the call has to wait.
func (c *class) allow() bool {
	c.review()
	if c.rate == 0 {
		return true
	}
	c.refill()
	if len(c.waiting) > 0 || c.tokens < 1 {
		return false
	}
	c.tokens--
	return true
}

// debit takes tokens away for calls of the other class or of other workers.
func (c *class) debit(calls float64) {
	c.refill()
	c.tokens = max(c.tokens-calls, -c.rate*maxDebt.Seconds())
}

// refill adds the tokens of the time since the last refill. The bucket holds those of a tenth of a second.
func (c *class) refill() {
	now := time.Now()
	c.tokens = min(c.tokens+now.Sub(c.refilled).Seconds()*c.rate, max(1, c.rate/10))
	c.refilled = now
}

// release lets the calls go for which there are tokens, and sets a timer for the others. The timer locks mu.
func (c *class) release(mu *sync.Mutex) {
	for c.refill(); c.tokens >= 1 && len(c.waiting) > 0; c.tokens-- {
		close(c.waiting[0])
		c.waiting = c.waiting[1:]
	}
	if len(c.waiting) == 0 || c.timer != nil {
		return
	}
	c.timer = time.AfterFunc(time.Duration(math.Ceil((1-c.tokens)/c.rate*float64(time.Second))), func() {
		mu.Lock()
		defer mu.Unlock()
		c.timer = nil
		c.release(mu)
	})
}

// observe counts a call.
func (c *class) observe(throttled bool) {
	c.review()
	if throttled {
		c.throttled++
	} else {
		c.accepted++
	}
}

// review adapts the rate when a window is over, and drops a rate that has long not been decreased.
func (c *class) review() {
	now := time.Now()
	switch since := now.Sub(c.window); {
	case since < window:
		return
	case since < 2*window: // after a longer time the counts say nothing about calls a second
		c.adapt(since.Seconds(), now)
	}
	if c.rate > 0 && now.Sub(c.lastDecrease) > forgetAfter {
		c.rate = 0
		c.releaseAll()
	}
	c.window, c.accepted, c.throttled = now, 0, 0
}

// adapt sets the rate by what was counted in a window.
func (c *class) adapt(seconds float64, now time.Time) {
	tolerated, enough := firstTolerated, firstThrottled
	if c.rate > 0 {
		tolerated, enough = laterTolerated, laterThrottled
	}
	switch calls := c.accepted + c.throttled; {
	case c.throttled >= enough && c.throttled*tolerated >= calls:
		next := c.decreaseFactor * float64(c.accepted) / seconds
		switch {
		case c.rate > 0 && c.throttled > c.accepted:
			next = min(c.decreaseFactor, maxKept) * c.rate
		case c.rate > 0:
			next = c.decreaseFactor * c.rate
		}
		c.refill()
		c.rate, c.lastDecrease = max(minRate, next), now
		c.debit(max(c.tokens, 0))
	case c.throttled == 0 && float64(c.accepted) > minUsed*c.rate*seconds:
		c.rate *= math.Pow(c.increaseFactor, seconds)
	}
}

// releaseAll lets every call go that waits.
func (c *class) releaseAll() {
	for _, turn := range c.waiting {
		close(turn)
	}
	c.waiting = nil
}
