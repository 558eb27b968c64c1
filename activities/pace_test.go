package activities

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/temporal"
)

// counter is an account that takes so many calls a second, and turns all others away.
type counter struct {
	limit, taken, turned int
	second               int64
	inSecond             int
}

// call makes a call, and gives whether it was turned away.
func (c *counter) call() bool {
	if now := time.Now().Unix(); now != c.second {
		c.second, c.inSecond = now, 0
	}
	if c.inSecond++; c.inSecond > c.limit {
		c.turned++
		return true
	}
	c.taken++
	return false
}

// slowed is a pace that has learnt what its account takes.
func slowed(t *testing.T, limit int) *pace {
	t.Helper()
	p, account := &pace{}, &counter{limit: limit}
	for range 30 {
		for range limit {
			p.told(account.call())
		}
		time.Sleep(100 * time.Millisecond)
	}
	if p.rate == 0 || p.rate > float64(limit) {
		t.Fatalf("an account that takes %d calls a second is called %.1f times", limit, p.rate)
	}
	return p
}

func TestAnAccountIsCalledAtWillUntilItTurnsManyAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace{}
		for i := range 5000 { // a cloud that turns one in fifty away has no limit that we could keep
			if err := p.take(t.Context(), nil, i%2 == 0); err != nil {
				t.Fatal(err)
			}
			p.told(i%50 == 0)
			time.Sleep(2 * time.Millisecond)
		}
		if p.rate != 0 {
			t.Errorf("it is slowed down to %.1f", p.rate)
		}
	})
}

func TestManyCallersOfASlowAccountAreSeldomTurnedAway(t *testing.T) {
	for _, callers := range []int{100, 2400} { // those of a hundred stacks
		synctest.Test(t, func(t *testing.T) { manyCallers(t, callers) })
	}
}

// manyCallers call an account for two minutes, one call after another each.
func manyCallers(t *testing.T, callers int) {
	p, account := &pace{}, &counter{limit: 40}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	turns := make(chan struct{}, 1) // the counters are no good for several at once
	sentBack := 0
	for range callers {
		go func() {
			for ctx.Err() == nil {
				wait := 10 * time.Millisecond // how long a call takes
				err := p.take(ctx, nil, true)
				turns <- struct{}{}
				if again := (*temporal.ApplicationError)(nil); errors.As(err, &again) {
					wait = again.NextRetryDelay()
					sentBack++
				} else if err == nil && account.call() {
					wait = time.Second
					p.told(true)
				} else if err == nil {
					p.told(false)
				}
				<-turns
				time.Sleep(wait)
			}
		}()
	}
	<-ctx.Done()
	synctest.Wait()
	time.Sleep(time.Minute) // the last ones
	learning := callers     // who calls before it is known that the account takes few
	if account.turned > learning+account.taken/10 || account.taken < 40*120*3/4 {
		t.Errorf("of %d callers, in two minutes %d calls were taken and %d turned away", callers, account.taken, account.turned)
	}
	if sentBack > 2*account.taken {
		t.Errorf("of %d callers, %d were sent back while %d calls were taken", callers, sentBack, account.taken)
	}
}

func TestACallThatSomebodyWaitsForGoesBeforeTheScheduledOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slowed(t, 10)
		var order []string
		take := func(who string, scheduled bool) {
			go func() {
				if p.take(t.Context(), nil, scheduled) == nil {
					order = append(order, who)
				}
			}()
			synctest.Wait()
		}
		p.mu.Lock()
		p.tokens, p.refilled = 0, time.Now()
		p.mu.Unlock()
		take("scheduled", true)
		take("scheduled", true)
		take("prompt", false)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(order) != 3 || order[0] != "prompt" {
			t.Errorf("they went as %q", order)
		}
	})
}

func TestScheduledCallsDoNotWaitBehindManyOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slowed(t, 10)
		waits, sentBack := 0, 0
		for range 50 {
			go func() {
				var again *temporal.ApplicationError
				if err := p.take(t.Context(), nil, true); errors.As(err, &again) && again.NextRetryDelay() > 0 {
					sentBack++
				}
			}()
			synctest.Wait()
		}
		waits = len(p.waiting.scheduled)
		if waits == 0 || waits > 20 || sentBack < 50-waits-2 {
			t.Errorf("%d wait and %d were sent back", waits, sentBack)
		}
		time.Sleep(10 * time.Second)
	})
}

func TestWhoWaitsForAnAccountCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slowed(t, 10)
		p.tokens, p.refilled = -100, time.Now()
		cancelled, result := make(chan struct{}), make(chan error, 1)
		go func() { result <- p.take(t.Context(), cancelled, false) }()
		synctest.Wait()
		close(cancelled)
		if err := <-result; !temporal.IsCanceledError(err) {
			t.Errorf("it ends with %v", err)
		}
		if len(p.waiting.prompt) > 0 {
			t.Error("it still waits")
		}
		time.Sleep(time.Minute)
	})
}

func TestAnAccountThatTurnsNobodyAwayIsCalledAtWillAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slowed(t, 10)
		time.Sleep(paceForgotten + paceWindow)
		p.told(false)
		if p.rate != 0 {
			t.Errorf("it is still called %.1f times a second", p.rate)
		}
	})
}
