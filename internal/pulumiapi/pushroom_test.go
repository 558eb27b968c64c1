package pulumiapi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestMessagesOfGitServersShareBoundedMemory plays random messages, of which some are slow and some leave meanwhile.
func TestMessagesOfGitServersShareBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRoom()
		var taken, most, served, stopped atomic.Int64
		var all sync.WaitGroup
		for n := range 3000 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(7, uint64(n)))
				<-time.After(time.Duration(random.IntN(30_000)) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(30_000))*time.Millisecond)
				defer cancel()
				size := random.Int64N(smallBody)
				over := make(chan struct{})
				p, err := r.enter(ctx, fmt.Sprint(random.IntN(20)), size, sync.OnceFunc(func() { close(over) }))
				if err != nil {
					if !errors.Is(err, errPushes) && ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				if now := taken.Add(size); now > most.Load() {
					most.Store(now)
				}
				begun := time.Now()
				select {
				case <-over:
					stopped.Add(1)
					if took := time.Since(begun); took < pushShare {
						t.Errorf("one gives way after %s", took)
					}
				case <-time.After(time.Duration(random.IntN(6000)) * time.Millisecond):
					if r.arrived(p) {
						served.Add(1)
					}
				}
				taken.Add(-size)
				r.leave(p)
			})
		}
		all.Wait()
		if most.Load() > pushMemory || served.Load() == 0 || stopped.Load() == 0 {
			t.Errorf("they took %d bytes; %d were served and %d gave way", most.Load(), served.Load(), stopped.Load())
		}
		if r.free != pushMemory || r.leaving != 0 || len(r.used)+len(r.waiting)+len(r.arriving) > 0 {
			t.Errorf("something stays: %+v", r)
		}
	})
}

func TestAMessageWaitsForItsPlaceAndNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRoom()
		enter := func(host string, size int64, stop func()) (*push, error) {
			return r.enter(t.Context(), host, size, stop)
		}
		var whole []*push
		for range pushMemory/smallBody - pushReserve {
			p, err := enter("a", smallBody, func() { t.Error("a whole message gives way") })
			if err != nil {
				t.Fatal(err)
			}
			r.arrived(p)
			whole = append(whole, p)
		}
		begun := time.Now()
		if _, err := enter("b", smallBody, nil); !errors.Is(err, errPushes) || time.Since(begun) != placePatience {
			t.Errorf("without a place it ends with %v after %s", err, time.Since(begun))
		}
		time.AfterFunc(time.Second, func() { r.leave(whole[0]) })
		begun = time.Now()
		p, err := enter("b", smallBody, nil)
		if err != nil || time.Since(begun) != time.Second {
			t.Fatalf("with one that becomes free it gets %v after %s", err, time.Since(begun))
		}
		r.arrived(p)
		var refused atomic.Int64
		for range waitingPushes + 10 {
			go func() {
				if _, err := enter("b", smallBody, nil); time.Since(begun) == time.Second && errors.Is(err, errPushes) {
					refused.Add(1)
				}
			}()
		}
		synctest.Wait()
		if refused.Load() != 10 {
			t.Errorf("%d are refused at once", refused.Load())
		}
		if _, err := enter("b", leastPush, nil); err != nil || time.Since(begun) != time.Second {
			t.Errorf("a small one among them waits for %s: %v", time.Since(begun)-time.Second, err)
		}
	})
}

// TestTheHostThatHasTheMostGivesWayToTheOneThatHasTheLeast fills the room with slow messages of a host and one of
// another.
func TestTheHostThatHasTheMostGivesWayToTheOneThatHasTheLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRoom()
		stopped, placed := make(chan string, 1), make(chan string, 3)
		all := map[string][]*push{}
		enter := func(host string) {
			p, err := r.enter(t.Context(), host, smallBody, func() { stopped <- host })
			if err != nil {
				t.Error(err)
				return
			}
			all[host] = append(all[host], p)
			placed <- host
		}
		for n := range pushMemory/smallBody - pushReserve {
			if enter("few"); n > 0 {
				r.leave(all["few"][n])
				enter("many")
				<-placed
			}
			<-placed
		}
		for _, host := range []string{"many", "few", "none"} { // in this order
			go enter(host)
			synctest.Wait()
		}
		begun := time.Now()
		for n, want := range []string{"none", "few", "many"} {
			if from := <-stopped; from != "many" {
				t.Errorf("it is %s that gives way", from)
			}
			r.leave(all["many"][n])
			if to := <-placed; to != want {
				t.Errorf("%s gets the place, and not %s", to, want)
			}
		}
		if took := time.Since(begun); took != pushShare {
			t.Errorf("it takes %s", took)
		}
	})
}

func TestAMessageCountsForItsHost(t *testing.T) {
	for host, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64", "2001:db8:0:0:1::2": "2001:db8::/64",
		"2001:db8:0:1::1": "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64", "::ffff:192.0.2.1": "::ffff:192.0.2.1",
		"pipe": "pipe",
	} {
		if got := pushHost(host); got != want {
			t.Errorf("%s counts for %s, not %s", host, got, want)
		}
	}
}
