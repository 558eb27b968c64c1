package fairshare

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// messages are rules for messages of up to largest bytes.
var messages = Rules{Size: 64 << 20, Least: 16 << 10, Reserve: 3, Share: 2 * time.Second, Patience: 5 * time.Second,
	Waiting: 64}

const largest = 4 << 20

// TestWhatWasSharedIsNeverMoreThanThereIs plays random messages, of which some are slow and some leave meanwhile.
func TestWhatWasSharedIsNeverMoreThanThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(messages)
		var taken, most, served, stopped atomic.Int64
		var all sync.WaitGroup
		for n := range 3000 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(7, uint64(n)))
				<-time.After(time.Duration(random.IntN(30_000)) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(30_000))*time.Millisecond)
				defer cancel()
				size := random.Int64N(largest)
				over := make(chan struct{})
				p, err := r.Enter(ctx, fmt.Sprint(random.IntN(20)), size, sync.OnceFunc(func() { close(over) }))
				if err != nil {
					if !errors.Is(err, ErrFull) && ctx.Err() == nil {
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
					if took := time.Since(begun); took < messages.Share {
						t.Errorf("one gives way after %s", took)
					}
				case <-time.After(time.Duration(random.IntN(6000)) * time.Millisecond):
					if r.Stay(p) {
						served.Add(1)
					}
				}
				taken.Add(-size)
				r.Leave(p)
			})
		}
		all.Wait()
		if most.Load() > messages.Size || served.Load() == 0 || stopped.Load() == 0 {
			t.Errorf("they took %d bytes; %d were served and %d gave way", most.Load(), served.Load(), stopped.Load())
		}
		if r.free != messages.Size || r.leaving != 0 || len(r.hosts)+len(r.waiting)+len(r.yielding) > 0 {
			t.Errorf("something stays: %+v", r)
		}
	})
}

func TestAMessageWaitsForItsPlaceAndNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(messages)
		enter := func(host string, size int64, stop func()) (*Place, error) {
			return r.Enter(t.Context(), host, size, stop)
		}
		var whole []*Place
		for range messages.Size/largest - messages.Reserve {
			p, err := enter("a", largest, func() { t.Error("a whole message gives way") })
			if err != nil {
				t.Fatal(err)
			}
			r.Stay(p)
			whole = append(whole, p)
		}
		begun := time.Now()
		if _, err := enter("b", largest, nil); !errors.Is(err, ErrFull) || time.Since(begun) != messages.Patience {
			t.Errorf("without a place it ends with %v after %s", err, time.Since(begun))
		}
		time.AfterFunc(time.Second, func() { r.Leave(whole[0]) })
		begun = time.Now()
		p, err := enter("b", largest, nil)
		if err != nil || time.Since(begun) != time.Second {
			t.Fatalf("with one that becomes free it gets %v after %s", err, time.Since(begun))
		}
		r.Stay(p)
		var refused atomic.Int64
		for range messages.Waiting + 10 {
			go func() {
				if _, err := enter("b", largest, nil); time.Since(begun) == time.Second && errors.Is(err, ErrFull) {
					refused.Add(1)
				}
			}()
		}
		synctest.Wait()
		if refused.Load() != 10 {
			t.Errorf("%d are refused at once", refused.Load())
		}
		if _, err := enter("b", messages.Least, nil); err != nil || time.Since(begun) != time.Second {
			t.Errorf("a small one among them waits for %s: %v", time.Since(begun)-time.Second, err)
		}
	})
}

// TestTheHostThatHasTheMostGivesWayToTheOneThatHasTheLeast fills the room with slow messages of a host and one of
// another.
func TestTheHostThatHasTheMostGivesWayToTheOneThatHasTheLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(messages)
		stopped, placed := make(chan string, 1), make(chan string, 3)
		all := map[string][]*Place{}
		enter := func(host string) {
			p, err := r.Enter(t.Context(), host, largest, func() { stopped <- host })
			if err != nil {
				t.Error(err)
				return
			}
			all[host] = append(all[host], p)
			placed <- host
		}
		for n := range messages.Size/largest - messages.Reserve {
			if enter("few"); n > 0 {
				r.Leave(all["few"][n])
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
			r.Leave(all["many"][n])
			if to := <-placed; to != want {
				t.Errorf("%s gets the place, and not %s", to, want)
			}
		}
		if took := time.Since(begun); took != messages.Share {
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
		if got := Host(host); got != want {
			t.Errorf("%s counts for %s, not %s", host, got, want)
		}
	}
}

// TestOneWithoutAPlaceTakesThatOfTheHostThatHasTheMost has no share of time, as connections of strangers have none.
func TestOneWithoutAPlaceTakesThatOfTheHostThatHasTheMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(Rules{Size: 10, Least: 1, Patience: time.Second})
		var gone []string
		enter := func(host, name string) {
			var p *Place
			placed := make(chan struct{})
			p, err := r.Enter(t.Context(), host, 1, func() {
				gone = append(gone, name)
				go func() { <-placed; r.Leave(p) }()
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			close(placed)
		}
		for n := range 8 {
			enter("many", fmt.Sprint("many ", n))
		}
		for _, name := range []string{"few 0", "few 1", "few 2", "one", "many 8"} {
			host, _, _ := strings.Cut(name, " ")
			enter(host, name)
		}
		if want := "[many 0 many 1 many 2]"; fmt.Sprint(gone) != want {
			t.Errorf("%v give way, not %s", gone, want)
		}
	})
}
