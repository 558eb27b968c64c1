package ratelimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// counter is an account that accepts a number of calls a second and throttles the others.
type counter struct {
	mu                                    sync.Mutex
	limit, accepted, throttled, postponed int
	second                                int64
	inSecond                              int
}

// call makes a call and returns whether it was throttled.
func (c *counter) call() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now().Unix(); now != c.second {
		c.second, c.inSecond = now, 0
	}
	if c.inSecond++; c.inSecond > c.limit {
		c.throttled++
		return true
	}
	c.accepted++
	return false
}

// made returns how many calls were accepted so far.
func (c *counter) made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.accepted
}

// postpone counts a call that was postponed before it was made.
func (c *counter) postpone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.postponed++
}

// slowed returns a limiter that has learnt the limit of its account.
func slowed(t *testing.T, limit int) *Limiter {
	t.Helper()
	l, account := newLimiter(), &counter{limit: limit}
	for range 30 {
		for range limit {
			throttled := account.call()
			l.prompt.observe(throttled)
			l.scheduled.observe(throttled)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if l.prompt.rate == 0 || l.prompt.rate > float64(limit) {
		t.Fatalf("the rate for an account that accepts %d calls a second is %.1f", limit, l.prompt.rate)
	}
	return l
}

// TestAnAccountThatThrottlesFewCallsIsUnlimited: one call in fifty, at random, does not mean that a lower rate would
// help.
func TestAnAccountThatThrottlesFewCallsIsUnlimited(t *testing.T) {
	const rounds, calls = 20, 1000
	slowed := 0
	for seed := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) {
			l, chance := newLimiter(), rand.New(rand.NewPCG(seed, 0))
			var wg sync.WaitGroup
			for range calls {
				time.Sleep(time.Duration(chance.IntN(60)) * time.Millisecond) // some seconds are busier than others
				away := chance.IntN(50) == 0
				wg.Go(func() {
					if err := l.Wait(t.Context(), nil, false); err != nil {
						t.Error(err)
					}
					time.Sleep(200 * time.Millisecond)
					l.Observe(false, away)
				})
			}
			wg.Wait()
			if l.prompt.rate > 0 {
				slowed++
			}
		})
	}
	if slowed > rounds/10 {
		t.Errorf("of %d accounts, %d are slowed down", rounds, slowed)
	}
}

func TestManyCallersOfASlowAccountAreSeldomThrottled(t *testing.T) {
	for _, callers := range []int{100, 2400} { // those of a hundred stacks
		synctest.Test(t, func(t *testing.T) { manyCallers(t, callers) })
	}
}

// manyCallers call an account for two minutes, one call after another each.
func manyCallers(t *testing.T, callers int) {
	l, account := newLimiter(), &counter{limit: 40}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for range callers {
		go func() {
			for ctx.Err() == nil {
				account.callUntilAccepted(ctx, l, true)
			}
		}()
	}
	<-ctx.Done()
	synctest.Wait()
	time.Sleep(maxPostponed + time.Minute) // the last ones
	learning := callers                    // calls that are made before the limit is known
	if account.throttled > learning+account.accepted/10 || account.accepted < 40*120*2/3 {
		t.Errorf("of %d callers, in two minutes %d calls were accepted and %d throttled", callers, account.accepted,
			account.throttled)
	}
	if account.postponed > 3*account.accepted {
		t.Errorf("of %d callers, %d were postponed while %d calls were accepted", callers, account.postponed,
			account.accepted)
	}
}

// TestPromptCallsFindRoomBesideScheduledOnes: two workers make scheduled calls to an account all the time, and each
// deploys in turn. The rate of scheduled calls goes up and down, so deployments begin at several points of that.
func TestPromptCallsFindRoomBesideScheduledOnes(t *testing.T) {
	var alone, beside, first time.Duration
	const rhythms = 10
	for i := range rhythms {
		synctest.Test(t, func(t *testing.T) {
			a, b := alternately(t, 8*time.Second+time.Duration(i)*171*time.Millisecond)
			alone, beside, first = alone+mean(a), beside+mean(b), first+b[0]
		})
	}
	if beside > alone*6/5 || first > alone*6/5 {
		t.Errorf("60 calls take %s alone and %s beside scheduled ones, the first of them %s", alone/rhythms,
			beside/rhythms, first/rhythms)
	}
}

// alternately deploys with two workers in turn, first alone and then beside scheduled calls of both.
func alternately(t *testing.T, every time.Duration) (alone, beside []time.Duration) {
	account := &counter{limit: 40}
	workers := []*Limiter{newLimiter(), newLimiter()}
	deploys := func() (took []time.Duration) {
		for i := range 8 {
			took = append(took, deploy(t, workers[i%2], account))
			time.Sleep(every)
		}
		return took
	}
	alone = deploys()
	ctx, cancel := context.WithCancel(t.Context())
	for _, l := range workers {
		for range 64 {
			go func() {
				for ctx.Err() == nil {
					account.callUntilAccepted(ctx, l, true)
				}
			}()
		}
	}
	const busy = time.Minute
	time.Sleep(busy / 3)
	before := account.made()
	time.Sleep(busy)
	if scheduled, most := account.made()-before, account.limit*int(busy.Seconds()); scheduled < most/2 {
		t.Errorf("%d scheduled calls were accepted where %d could be", scheduled, most)
	}
	beside = deploys()
	cancel()
	time.Sleep(2 * maxPostponed) // the last ones
	return alone, beside
}

func mean(all []time.Duration) (sum time.Duration) {
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}

// deploy makes 60 prompt calls and returns how long they take.
func deploy(t *testing.T, l *Limiter, account *counter) time.Duration {
	begin := time.Now()
	var calls sync.WaitGroup
	parallel := make(chan struct{}, 16)
	for range 60 {
		calls.Go(func() {
			parallel <- struct{}{}
			account.callUntilAccepted(t.Context(), l, false)
			<-parallel
		})
	}
	calls.Wait()
	return time.Since(begin)
}

// callUntilAccepted repeats a call until it is accepted.
func (c *counter) callUntilAccepted(ctx context.Context, l *Limiter, scheduled bool) {
	for wait, repeated := time.Second, 0; ctx.Err() == nil; {
		err := l.Wait(ctx, nil, scheduled)
		if later := (*Postponed)(nil); errors.As(err, &later) {
			c.postpone()
			time.Sleep(later.After)
			continue
		}
		if err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond) // how long a call takes
		throttled := c.call()
		first := l.Observe(scheduled, throttled)
		switch {
		case !throttled:
			return
		case first > 0:
			repeated++
			time.Sleep(Backoff(first, repeated))
		default:
			time.Sleep(wait)
			wait *= 2
		}
	}
}

func TestAPromptCallGoesBeforeScheduledOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowed(t, 10)
		var mu sync.Mutex
		var order []string
		take := func(who string, scheduled bool) {
			go func() {
				if l.Wait(t.Context(), nil, scheduled) == nil {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, who)
				}
			}()
			synctest.Wait()
		}
		l.mu.Lock()
		l.scheduled.tokens, l.scheduled.refilled = 0, time.Now()
		l.mu.Unlock()
		take("scheduled", true)
		take("scheduled", true)
		take("prompt", false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(order) != 3 || order[0] != "prompt" {
			t.Errorf("the order is %q", order)
		}
	})
}

func TestOnlyAPromptCallToASlowedAccountIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, untried := slowed(t, 10), newLimiter()
		if untried.Observe(false, true) != 0 || l.Observe(true, true) != 0 || l.Observe(false, false) != 0 ||
			l.Observe(false, true) != retryAfter {
			t.Error("another call than a throttled prompt one to an account with a rate has a pause, or that one has " +
				"none")
		}
	})
}

func TestScheduledCallsStandAsideOnceACallIsThrottled(t *testing.T) {
	for name, whose := range map[string]bool{"its own": true, "a prompt one": false} {
		synctest.Test(t, func(t *testing.T) {
			l := slowed(t, 10)
			time.Sleep(maxDebt)
			for range 2 { // until it is known that there are scheduled ones
				if err := l.Wait(t.Context(), nil, true); err != nil {
					t.Fatal(err)
				}
				l.Observe(true, false)
			}
			l.Observe(whose, true)
			begin := time.Now()
			if err := l.Wait(t.Context(), nil, true); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begin); waited < maxDebt || waited > 2*maxDebt {
				t.Errorf("after %s the next one waits for %s", name, waited)
			}
		})
	}
}

func TestScheduledCallsDoNotWaitBehindManyOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowed(t, 10)
		waits, postponed := 0, 0
		for range 50 {
			go func() {
				var later *Postponed
				if err := l.Wait(t.Context(), nil, true); errors.As(err, &later) && later.After > 0 {
					postponed++
				}
			}()
			synctest.Wait()
		}
		l.mu.Lock()
		waits = len(l.scheduled.waiting)
		l.mu.Unlock()
		if waits == 0 || waits > 20 || postponed < 50-waits-2 {
			t.Errorf("%d wait and %d were postponed", waits, postponed)
		}
		time.Sleep(10 * time.Second)
	})
}

func TestAWaitForAnAccountCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowed(t, 10)
		l.prompt.tokens, l.prompt.refilled = -100, time.Now()
		cancelled, result := make(chan struct{}), make(chan error, 1)
		go func() { result <- l.Wait(t.Context(), cancelled, false) }()
		synctest.Wait()
		close(cancelled)
		if err := <-result; !errors.Is(err, ErrCancelled) {
			t.Errorf("it ends with %v", err)
		}
		if len(l.prompt.waiting) > 0 {
			t.Error("it still waits")
		}
		time.Sleep(time.Minute)
	})
}

func TestAnAccountThatThrottlesNoCallIsUnlimitedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowed(t, 10)
		time.Sleep(forgetAfter + window)
		l.Observe(false, false)
		if l.prompt.rate != 0 {
			t.Errorf("it still has a rate of %.1f calls a second", l.prompt.rate)
		}
	})
}
