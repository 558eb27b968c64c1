package mempool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const testSize = 64 << 20

// take has a new claim of a party get n bytes.
func take(t *testing.T, p *Pool, party string, n int64, stop func()) *Claim {
	t.Helper()
	c := p.Claim(party, stop)
	if err := c.Take(t.Context(), n, time.Minute); err != nil {
		t.Fatal(err)
	}
	return c
}

// nothing reports what stays of claims that were released.
func nothing(t *testing.T, p *Pool) {
	t.Helper()
	if p.free != p.size || p.leaving != 0 || len(p.used)+len(p.waiting)+len(p.holding) > 0 {
		t.Errorf("something stays: %d of %d are free, %d leave, %v are used, %d wait, %d hold", p.free, p.size, p.leaving,
			p.used, len(p.waiting), len(p.holding))
	}
}

// TestClaimsShareBoundedMemory plays random contents, which arrive in steps, of which some are slow, some become larger
// once they are whole, and some leave meanwhile.
func TestClaimsShareBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(testSize)
		var taken, most, served, stopped atomic.Int64
		var all sync.WaitGroup
		for n := range 3000 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(7, uint64(n)))
				<-time.After(time.Duration(random.IntN(30_000)) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(60_000))*time.Millisecond)
				defer cancel()
				over := make(chan struct{})
				c := p.Claim(fmt.Sprint(random.IntN(20)), sync.OnceFunc(func() { close(over) }))
				held := int64(0)
				defer func() {
					taken.Add(-held)
					c.Release()
				}()
				get := func(n int64) bool {
					err := c.Take(ctx, n, 30*time.Second)
					if err != nil {
						if !errors.Is(err, ErrBusy) && ctx.Err() == nil {
							t.Error(err)
						}
						return false
					}
					held += n
					if now := taken.Add(n); now > most.Load() {
						most.Store(now)
					}
					return true
				}
				for range 1 + random.IntN(4) {
					if !get(random.Int64N(Step)) {
						return
					}
					begun := time.Now()
					select {
					case <-over:
						stopped.Add(1)
						if took := time.Since(begun); took < stepTime {
							t.Errorf("one gives way after %s", took)
						}
						return
					case <-time.After(time.Duration(random.IntN(3000)) * time.Millisecond):
					}
				}
				if c.Whole() && get(random.Int64N(8*Step)) {
					<-time.After(time.Duration(random.IntN(1000)) * time.Millisecond)
					served.Add(1)
				}
			})
		}
		all.Wait()
		if most.Load() > testSize || served.Load() == 0 || stopped.Load() == 0 {
			t.Errorf("they took %d bytes; %d were served and %d gave way", most.Load(), served.Load(), stopped.Load())
		}
		nothing(t, p)
	})
}

func TestASlowContentGivesWayToThoseThatWaitAndAFastOneDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(testSize)
		var stopped []string
		var claims []*Claim
		arrives := func(party string) *Claim {
			c := take(t, p, party, testSize/8, func() { stopped = append(stopped, party) })
			claims = append(claims, c)
			return c
		}
		slow, fast := arrives("evil"), arrives("other")
		for range 3 {
			arrives("evil").Whole()
		}
		begun := time.Now()
		got := make(chan error, 1)
		next := p.Claim("acme", nil)
		go func() { got <- next.Take(t.Context(), testSize/2, time.Minute) }()
		for range 3 {
			<-time.After(time.Second)
			fast.Moved()
		}
		synctest.Wait()
		if len(stopped) != 1 || stopped[0] != "evil" {
			t.Fatalf("%v give way", stopped)
		}
		if slow.Whole() || !fast.Whole() {
			t.Error("it is not the slow one that gives way")
		}
		slow.Release()
		if err := <-got; err != nil || time.Since(begun) != 3*time.Second {
			t.Errorf("who waits gets %v after %s", err, time.Since(begun))
		}
		next.Release()
		for _, c := range claims {
			c.Release()
		}
		nothing(t, p)
	})
}

// TestThePartyThatHasTheLeastGoesFirst has a party ask first that has much, and one last that has nothing.
func TestThePartyThatHasTheLeastGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(testSize)
		held := []*Claim{take(t, p, "many", testSize/2, nil), take(t, p, "few", testSize/4, nil),
			take(t, p, "many", testSize/4, nil)}
		served := make(chan string, 3)
		for _, party := range []string{"many", "few", "none"} {
			go func() {
				c := p.Claim(party, nil)
				if err := c.Take(t.Context(), testSize/4, time.Minute); err != nil {
					t.Error(err)
				}
				served <- party
				c.Release()
			}()
			synctest.Wait()
		}
		held[2].Release()
		for _, want := range []string{"none", "few", "many"} {
			if got := <-served; got != want {
				t.Errorf("%s goes before %s", got, want)
			}
		}
	})
}

func TestAClaimWaitsForMemoryAndNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(testSize)
		large := take(t, p, "a", 3*testSize, nil) // it counts as all there is
		begun := time.Now()
		c := p.Claim("b", nil)
		if err := c.Take(t.Context(), 1, time.Second); !errors.Is(err, ErrBusy) || time.Since(begun) != time.Second {
			t.Errorf("without memory it ends with %v after %s", err, time.Since(begun))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Take(gone, 1, time.Second); !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone is answered %v", err)
		}
		time.AfterFunc(time.Second, large.Release)
		begun = time.Now()
		if err := c.Take(t.Context(), 1, time.Minute); err != nil || time.Since(begun) != time.Second {
			t.Errorf("once there is memory it ends with %v after %s", err, time.Since(begun))
		}
		c.Release()
		c.Release() // has no effect
		nothing(t, p)
	})
}

// TestClaimsThatAllWaitForMoreDoNotWaitForEachOther fills the pool with two contents that need more of it each.
func TestClaimsThatAllWaitForMoreDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(testSize)
		var served, refused atomic.Int32
		var all sync.WaitGroup
		for _, party := range []string{"a", "b"} {
			c := take(t, p, party, testSize/2, nil)
			all.Go(func() {
				defer c.Release()
				switch err := c.Take(t.Context(), testSize/2, time.Hour); {
				case err == nil:
					served.Add(1)
				case errors.Is(err, ErrBusy):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		begun := time.Now()
		all.Wait()
		if served.Load() != 1 || refused.Load() != 1 || time.Since(begun) != growTime {
			t.Errorf("%d are served and %d refused after %s", served.Load(), refused.Load(), time.Since(begun))
		}
	})
}

func TestOfTooManyOfAPartyTheLargestIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(testSize)
		all := take(t, p, "a", testSize, nil)
		begun := time.Now()
		var refused atomic.Int64
		for n := range mostWaiting + 1 {
			go func() {
				c := p.Claim("b", nil)
				defer c.Release()
				if err := c.Take(t.Context(), int64(n+1), time.Minute); errors.Is(err, ErrBusy) && time.Since(begun) == 0 {
					refused.Add(int64(n))
				}
			}()
			synctest.Wait()
		}
		if refused.Load() != mostWaiting {
			t.Errorf("%d is refused, and not the largest", refused.Load())
		}
		all.Release()
	})
}

func TestACallTakesMemoryFromTheClaimOfItsContext(t *testing.T) {
	p := New(testSize)
	c := p.Claim("a", nil)
	ctx := With(t.Context(), c, time.Minute)
	for _, free := range []context.Context{t.Context(), Without(ctx)} {
		if err := Take(free, testSize); err != nil || p.free != testSize {
			t.Errorf("without a claim it takes %d: %v", testSize-p.free, err)
		}
	}
	var taking sync.WaitGroup
	for range 16 { // a call may do several things at a time
		taking.Go(func() {
			if err := Take(ctx, Step); err != nil {
				t.Error(err)
			}
		})
	}
	taking.Wait()
	if p.free != testSize-16*Step {
		t.Errorf("it takes %d", testSize-p.free)
	}
	c.Release()
	if err := Take(ctx, Step); err != nil { // something that the call has left behind
		t.Error(err)
	}
	nothing(t, p)
}

// TestGarbageLeavesBeforeMuchIsGivenAtOnce has a process that may have less than it uses.
func TestGarbageLeavesBeforeMuchIsGivenAtOnce(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1))
	p := New(testSize)
	for n, want := range map[int64]bool{small + 1: false, large - 1: false, large: true, testSize: true} {
		c := p.Claim("a", nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := Take(With(t.Context(), c, 0), n); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if got := after.NumForcedGC > before.NumForcedGC; got != want {
			t.Errorf("before %d bytes are used, the garbage is collected: %v", n, got)
		}
		c.Release()
	}
	nothing(t, p)
}

func TestAClaimThatDropsItsMemoryMayTakeMore(t *testing.T) {
	p := New(testSize)
	c := take(t, p, "a", testSize, nil)
	ctx := With(t.Context(), c, 0)
	for range 3 {
		Drop(ctx)
		nothing(t, p)
		if err := Take(ctx, testSize); err != nil {
			t.Fatal(err)
		}
	}
	c.Release()
	nothing(t, p)
}

// TestTakenIsWhatThoseNeedThatHaveIt has claims that have, wait and need more than there is.
func TestTakenIsWhatThoseNeedThatHaveIt(t *testing.T) {
	p := New(10)
	taken := func(want int64) {
		t.Helper()
		if got := p.Taken(); got != want {
			t.Errorf("%d are taken, not %d", got, want)
		}
	}
	one, other := p.Claim("a", nil), p.Claim("b", nil)
	for _, c := range []*Claim{one, other} {
		if err := c.Take(t.Context(), 4, 0); err != nil {
			t.Fatal(err)
		}
	}
	taken(8)
	if err := one.Take(t.Context(), 100, 0); err == nil {
		t.Error("it gets what the other one has")
	}
	taken(8)
	other.Release()
	if err := one.Take(t.Context(), 100, 0); err != nil {
		t.Fatal(err)
	}
	taken(104)
	one.Return(94)
	taken(10)
	one.Release()
	taken(0)
}

// TestLargeContentsOfOnePartyArriveOneAfterTheOther has contents arrive in steps that fit only one at a time. Each
// begins anew when it had to give way, as clients do.
func TestLargeContentsOfOnePartyArriveOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(20 * Step)
		var arriving sync.WaitGroup
		var tries atomic.Int64
		for range 6 {
			arriving.Go(func() {
				for content := func() bool {
					tries.Add(1)
					var gone atomic.Bool
					c := p.Claim("a", func() { gone.Store(true) })
					defer c.Release()
					for range 10 {
						if c.Take(t.Context(), Step, time.Minute) != nil || gone.Load() {
							return false
						}
						time.Sleep(100 * time.Millisecond)
						c.Moved()
					}
					return c.Whole() && c.Take(t.Context(), 30*Step, time.Minute) == nil
				}; !content(); {
				}
			})
		}
		arriving.Wait()
		if n := tries.Load(); n > 60 {
			t.Errorf("6 contents have begun %d times", n)
		}
		nothing(t, p)
	})
}
