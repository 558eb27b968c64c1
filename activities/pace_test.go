package activities

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/temporal"
)

// counter is an account that takes so many calls a second, and turns all others away.
type counter struct {
	mu                             sync.Mutex
	limit, taken, turned, sentBack int
	second                         int64
	inSecond                       int
}

// call makes a call, and gives whether it was turned away.
func (c *counter) call() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// back counts a caller who was sent back before it called.
func (c *counter) back() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sentBack++
}

// slowed is a pace that has learnt what its account takes.
func slowed(t *testing.T, limit int) *pace {
	t.Helper()
	p, account := newPace(), &counter{limit: limit}
	for range 30 {
		for range limit {
			turned := account.call()
			p.prompt.told(turned)
			p.scheduled.told(turned)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if p.prompt.rate == 0 || p.prompt.rate > float64(limit) {
		t.Fatalf("an account that takes %d calls a second is called %.1f times", limit, p.prompt.rate)
	}
	return p
}

// TestAnAccountThatTurnsFewAwayIsCalledAtWill: one call in fifty, by chance, tells nothing of a limit that could be
// kept.
func TestAnAccountThatTurnsFewAwayIsCalledAtWill(t *testing.T) {
	const rounds, calls = 20, 1000
	slowed := 0
	for seed := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) {
			p, chance := newPace(), rand.New(rand.NewPCG(seed, 0))
			var wg sync.WaitGroup
			for range calls {
				time.Sleep(time.Duration(chance.IntN(60)) * time.Millisecond) // some seconds are busier than others
				away := chance.IntN(50) == 0
				wg.Go(func() {
					if err := p.take(t.Context(), nil, false); err != nil {
						t.Error(err)
					}
					time.Sleep(200 * time.Millisecond)
					p.told(false, away)
				})
			}
			wg.Wait()
			if p.prompt.rate > 0 {
				slowed++
			}
		})
	}
	if slowed > rounds/10 {
		t.Errorf("of %d accounts, %d are slowed down", rounds, slowed)
	}
}

func TestManyCallersOfASlowAccountAreSeldomTurnedAway(t *testing.T) {
	for _, callers := range []int{100, 2400} { // those of a hundred stacks
		synctest.Test(t, func(t *testing.T) { manyCallers(t, callers) })
	}
}

// manyCallers call an account for two minutes, one call after another each.
func manyCallers(t *testing.T, callers int) {
	p, account := newPace(), &counter{limit: 40}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for range callers {
		go func() {
			for ctx.Err() == nil {
				account.askedBy(ctx, p, true)
			}
		}()
	}
	<-ctx.Done()
	synctest.Wait()
	time.Sleep(farthest + time.Minute) // the last ones
	learning := callers                // who calls before it is known that the account takes few
	if account.turned > learning+account.taken/10 || account.taken < 40*120*2/3 {
		t.Errorf("of %d callers, in two minutes %d calls were taken and %d turned away", callers, account.taken,
			account.turned)
	}
	if account.sentBack > 3*account.taken {
		t.Errorf("of %d callers, %d were sent back while %d calls were taken", callers, account.sentBack, account.taken)
	}
}

// TestWhoWaitsFindsRoomBesideScheduledCalls: two workers call an account by schedule all the time, and somebody deploys
// with each in turn. Where in the scheduled calls' ups and downs a deployment falls is luck, so it is tried at several.
func TestWhoWaitsFindsRoomBesideScheduledCalls(t *testing.T) {
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
	workers := []*pace{newPace(), newPace()}
	deploys := func() (took []time.Duration) {
		for i := range 8 {
			took = append(took, deploy(t, workers[i%2], account))
			time.Sleep(every)
		}
		return took
	}
	alone = deploys()
	ctx, cancel := context.WithCancel(t.Context())
	for _, p := range workers {
		for range 64 {
			go func() {
				for ctx.Err() == nil {
					account.askedBy(ctx, p, true)
				}
			}()
		}
	}
	const busy = time.Minute
	time.Sleep(busy / 3)
	before := account.taken
	time.Sleep(busy)
	if scheduled, most := account.taken-before, account.limit*int(busy.Seconds()); scheduled < most/2 {
		t.Errorf("%d scheduled calls were taken where %d could be", scheduled, most)
	}
	beside = deploys()
	cancel()
	time.Sleep(2 * farthest) // the last ones
	return alone, beside
}

func mean(all []time.Duration) (sum time.Duration) {
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}

// deploy makes 60 calls that somebody waits for, and gives how long they take.
func deploy(t *testing.T, p *pace, account *counter) time.Duration {
	begin := time.Now()
	var calls sync.WaitGroup
	parallel := make(chan struct{}, 16)
	for range 60 {
		calls.Go(func() {
			parallel <- struct{}{}
			account.askedBy(t.Context(), p, false)
			<-parallel
		})
	}
	calls.Wait()
	return time.Since(begin)
}

// askedBy makes a call again until it is taken.
func (c *counter) askedBy(ctx context.Context, p *pace, scheduled bool) {
	for wait, refused := time.Second, 0; ctx.Err() == nil; {
		err := p.take(ctx, nil, scheduled)
		if again := (*temporal.ApplicationError)(nil); errors.As(err, &again) {
			c.back()
			time.Sleep(again.NextRetryDelay())
			continue
		}
		if err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond) // how long a call takes
		turned := c.call()
		soon := p.told(scheduled, turned)
		switch {
		case !turned:
			return
		case soon > 0:
			time.Sleep(soon << min(refused, mostDoubled))
			refused++
		default:
			time.Sleep(wait)
			wait *= 2
		}
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
		p.scheduled.tokens, p.scheduled.refilled = 0, time.Now()
		p.mu.Unlock()
		take("scheduled", true)
		take("scheduled", true)
		take("prompt", false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(order) != 3 || order[0] != "prompt" {
			t.Errorf("they went as %q", order)
		}
	})
}

func TestOnlyWhoWaitsForASlowedAccountIsCalledBackSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, untried := slowed(t, 10), newPace()
		if untried.told(false, true) != 0 || p.told(true, true) != 0 || p.told(false, false) != 0 ||
			p.told(false, true) != again {
			t.Error("it is not for the pace to say when it is called again, or it says nothing")
		}
	})
}

func TestScheduledCallsStandAsideOnceOneIsTurnedAway(t *testing.T) {
	for name, whose := range map[string]bool{"its own": true, "one that somebody waits for": false} {
		synctest.Test(t, func(t *testing.T) {
			p := slowed(t, 10)
			time.Sleep(aside)
			for range 2 { // until it is known that there are scheduled ones
				if err := p.take(t.Context(), nil, true); err != nil {
					t.Fatal(err)
				}
				p.told(true, false)
			}
			p.told(whose, true)
			begin := time.Now()
			if err := p.take(t.Context(), nil, true); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begin); waited < aside || waited > 2*aside {
				t.Errorf("after %s the next one waits for %s", name, waited)
			}
		})
	}
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
		waits = len(p.scheduled.waiting)
		if waits == 0 || waits > 20 || sentBack < 50-waits-2 {
			t.Errorf("%d wait and %d were sent back", waits, sentBack)
		}
		time.Sleep(10 * time.Second)
	})
}

func TestWhoWaitsForAnAccountCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slowed(t, 10)
		p.prompt.tokens, p.prompt.refilled = -100, time.Now()
		cancelled, result := make(chan struct{}), make(chan error, 1)
		go func() { result <- p.take(t.Context(), cancelled, false) }()
		synctest.Wait()
		close(cancelled)
		if err := <-result; !temporal.IsCanceledError(err) {
			t.Errorf("it ends with %v", err)
		}
		if len(p.prompt.waiting) > 0 {
			t.Error("it still waits")
		}
		time.Sleep(time.Minute)
	})
}

func TestAnAccountThatTurnsNobodyAwayIsCalledAtWillAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slowed(t, 10)
		time.Sleep(paceForgotten + paceWindow)
		p.told(false, false)
		if p.prompt.rate != 0 {
			t.Errorf("it is still called %.1f times a second", p.prompt.rate)
		}
	})
}
