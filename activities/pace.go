package activities

import (
	"context"
	"crypto/rand"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/internal/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

const (
	// paceWindow is over what time is counted how many calls an account turns away. From one in turnedAway on, and not
	// fewer than fewestAway, it is slowed down; later from one in turnedAgain and fewestAgain on. Fewer are noise,
	// which retries are for.
	paceWindow              = time.Second
	turnedAway, turnedAgain = 5, 30
	fewestAway, fewestAgain = 4, 1
	// A second without any that was turned away, and with at least the part used of what could go, makes it faster.
	// When most are turned away, it goes on with fewest of what there was. In any case slowest calls go in a second.
	used, fewest, slowest = 0.8, 0.5, 2
	// aside is how long scheduled calls stand aside, at most, for those that somebody waits for, and once an account
	// turns any away: those that it should have taken may be of another worker.
	aside = 2 * time.Second
	// paceForgotten is how long after the last slowing down an account is called at will again.
	paceForgotten = 5 * time.Minute
	// again is after what time a call that somebody waits for is made again, once its account is slowed down: the lane
	// says when it goes. It is doubled each time, mostDoubled times at most: what is never taken must not use the lane
	// up.
	again, mostDoubled = 250 * time.Millisecond, 8
	// fewestWaiting bounds the scheduled calls that wait, at least; else as many as go in waitingTime. The others come
	// again later, in farthest at most.
	fewestWaiting, waitingTime, farthest = 8, 2 * time.Second, 2 * time.Minute
)

// paces are those of the accounts that this worker calls: by the configuration of their providers. Updates have
// processes of their own, and the limits of an account in common.
type paces struct {
	key []byte
	mu  sync.Mutex
	all map[string]*pace
}

func newPaces() *paces {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return &paces{key: key, all: map[string]*pace{}}
}

// of gives the pace of the account that providers of a package call with a configuration.
func (ps *paces) of(pkg string, config resource.PropertyMap) (*pace, error) {
	digest, err := bags.Digest(ps.key, config)
	if err != nil {
		return nil, err
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p, ok := ps.all[pkg+"#"+digest]
	if !ok {
		ps.forget()
		p = newPace()
		ps.all[pkg+"#"+digest] = p
	}
	return p, nil
}

// forget drops the paces that tell nothing any more: those of credentials that were changed would stay for ever.
func (ps *paces) forget() {
	maps.DeleteFunc(ps.all, func(_ string, p *pace) bool { return p.idle(time.Now()) })
}

// idle tells whether nobody has called for so long that calls go at will again.
func (p *pace) idle(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range []*lane{&p.prompt, &p.scheduled} {
		if len(l.waiting) > 0 || now.Sub(l.window) < paceForgotten || now.Sub(l.cut) < paceForgotten {
			return false
		}
	}
	return now.Sub(p.made) >= paceForgotten
}

// pace lets the calls of one account through: at will, until it turns many away, and from then on as many a second as
// it takes. Calls that somebody waits for and scheduled ones have a lane each. The scheduled ones leave room: they take
// only a part of what their account would take, and less while the others go. A nil pace lets everything through.
type pace struct {
	mu                sync.Mutex
	prompt, scheduled lane
	// appointed is when the last of those who come again does.
	appointed time.Time
	made      time.Time
}

func newPace() *pace {
	return &pace{made: time.Now(), prompt: lane{keep: 0.9, hurry: 1.08}, scheduled: lane{keep: 0.5, hurry: 1.02}}
}

// take waits until a call may go. A scheduled one does not wait behind many others: it gives up its place in the
// worker, and comes again.
func (p *pace) take(ctx context.Context, cancelled <-chan struct{}, scheduled bool) error {
	turn, later := p.queue(scheduled)
	switch {
	case later > 0:
		return postponed("its account takes no more calls for now", later)
	case turn == nil:
		return nil
	}
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	var err error
	select {
	case <-turn:
		return nil
	case <-cancelled:
		err = temporal.NewCanceledError()
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = postponed("its account takes no more calls for now", time.Millisecond)
	}
	p.leave(turn)
	return err
}

// queue gives nil to those who may go at once, a channel to those who wait, and a time after which to come again.
func (p *pace) queue(scheduled bool) (turn chan struct{}, later time.Duration) {
	if p == nil {
		return nil, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.prompt
	if scheduled {
		l = &p.scheduled
	} else {
		p.scheduled.yield(1)
	}
	switch {
	case l.mayGo():
		return nil, 0
	case scheduled && float64(len(l.waiting)) >= max(fewestWaiting, waitingTime.Seconds()*l.rate):
		return nil, p.appoint(time.Now())
	}
	turn = make(chan struct{})
	l.waiting = append(l.waiting, turn)
	l.wake(&p.mu)
	return turn, 0
}

// appoint gives after what time a scheduled call is to come again: one after another, as fast as they can be let
// through, and from the beginning once that would be too far away. If all came at once, most would be sent back again.
func (p *pace) appoint(now time.Time) time.Duration {
	if first := now.Add(waitingTime); p.appointed.Before(first) || p.appointed.After(now.Add(farthest)) {
		p.appointed = first
	}
	p.appointed = p.appointed.Add(time.Duration(float64(time.Second) / p.scheduled.rate))
	return p.appointed.Sub(now)
}

// leave takes somebody out who waits no more.
func (p *pace) leave(turn chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range []*lane{&p.prompt, &p.scheduled} {
		l.waiting = slices.DeleteFunc(l.waiting, func(c chan struct{}) bool { return c == turn })
	}
}

// told counts what became of a call. One that somebody waits for and that was turned away tells the scheduled ones,
// too, that there are too many. It gives after what time such a call may be made again; 0: as the retry policy says.
func (p *pace) told(scheduled, throttled bool) time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !scheduled {
		p.prompt.told(throttled)
	}
	if scheduled || throttled && p.scheduled.taken > 0 {
		p.scheduled.told(throttled)
		if throttled {
			p.scheduled.yield(math.Inf(1))
		}
	}
	if throttled && !scheduled && p.prompt.rate > 0 {
		return again
	}
	return 0
}

// lane is the calls of a pace that have the same precedence; guarded by the pace.
type lane struct {
	// keep is with what part of its calls it goes on once too many are turned away, and hurry how much faster it
	// becomes in a good second.
	keep, hurry float64

	rate float64 // calls a second; 0: at will
	cut  time.Time
	// tokens are the calls that may go at once; counted at refilled.
	tokens   float64
	refilled time.Time
	// waiting are those who wait: closed when they may go.
	waiting []chan struct{}
	timer   *time.Timer

	window        time.Time
	taken, turned int // in this window
}

// mayGo lets a call go at once, if nobody waits.
func (l *lane) mayGo() bool {
	l.review()
	if l.rate == 0 {
		return true
	}
	l.refill()
	if len(l.waiting) > 0 || l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}

// yield gives calls away, to another lane or to another worker.
func (l *lane) yield(calls float64) {
	l.refill()
	l.tokens = max(l.tokens-calls, -l.rate*aside.Seconds())
}

// refill counts the calls that may go by now; at most those of a tenth of a second at once.
func (l *lane) refill() {
	now := time.Now()
	l.tokens = min(l.tokens+now.Sub(l.refilled).Seconds()*l.rate, max(1, l.rate/10))
	l.refilled = now
}

// wake lets go who may, and comes back for the others.
func (l *lane) wake(mu *sync.Mutex) {
	for l.refill(); l.tokens >= 1 && len(l.waiting) > 0; l.tokens-- {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
	if len(l.waiting) == 0 || l.timer != nil {
		return
	}
	l.timer = time.AfterFunc(time.Duration(math.Ceil((1-l.tokens)/l.rate*float64(time.Second))), func() {
		mu.Lock()
		defer mu.Unlock()
		l.timer = nil
		l.wake(mu)
	})
}

// told counts what became of a call.
func (l *lane) told(throttled bool) {
	l.review()
	if throttled {
		l.turned++
	} else {
		l.taken++
	}
}

// review adapts when a window is over.
func (l *lane) review() {
	now := time.Now()
	switch since := now.Sub(l.window); {
	case since < paceWindow:
		return
	case since < 2*paceWindow: // else it was idle in between, and the count tells nothing
		l.adapt(since.Seconds(), now)
	}
	if l.rate > 0 && now.Sub(l.cut) > paceForgotten {
		l.rate = 0
		l.open()
	}
	l.window, l.taken, l.turned = now, 0, 0
}

// adapt sets the rate after what was counted in a window.
func (l *lane) adapt(seconds float64, now time.Time) {
	tolerated, enough := turnedAway, fewestAway
	if l.rate > 0 {
		tolerated, enough = turnedAgain, fewestAgain
	}
	switch calls := l.taken + l.turned; {
	case l.turned >= enough && l.turned*tolerated >= calls:
		next := l.keep * float64(l.taken) / seconds
		switch {
		case l.rate > 0 && l.turned > l.taken:
			next = min(l.keep, fewest) * l.rate
		case l.rate > 0:
			next = l.keep * l.rate
		}
		l.refill()
		l.rate, l.cut = max(slowest, next), now
		l.yield(max(l.tokens, 0))
	case l.turned == 0 && float64(l.taken) > used*l.rate*seconds:
		l.rate *= math.Pow(l.hurry, seconds)
	}
}

// open lets everybody go.
func (l *lane) open() {
	for _, turn := range l.waiting {
		close(turn)
	}
	l.waiting = nil
}
