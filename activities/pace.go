package activities

import (
	"context"
	"crypto/rand"
	"math"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/internal/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

const (
	// paceWindow is over what time is counted how many calls an account turns away. From one in turnedAway on it is slowed down,
	// and later from one in turnedAgain on; before, only among fewestCalls and more: fewer are noise, which retries are for.
	paceWindow              = time.Second
	turnedAway, turnedAgain = 10, 30
	fewestCalls             = 20
	// slack is what part of the calls that were taken may come next, hurry how much faster it becomes in a second without
	// any that was turned away; slowest are the calls that go in a second in any case.
	slack, hurry, slowest = 0.95, 1.05, 2
	// paceForgotten is how long after the last slowing down an account is called at will again.
	paceForgotten = 5 * time.Minute
	// fewestWaiting bounds the scheduled calls that wait, at least; else as many as go in waitingTime. The others come again later,
	// in farthest at most.
	fewestWaiting, waitingTime, farthest = 8, 2 * time.Second, time.Minute
)

// paces are those of the accounts that this worker calls: by the configuration of their providers. Updates have processes of
// their own, and the limits of an account in common.
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
		p = &pace{}
		ps.all[pkg+"#"+digest] = p
	}
	return p, nil
}

// pace lets the calls of one account through: at will, until it turns many away, and from then on as many a second as it takes.
// Calls that somebody waits for go before those that were scheduled. A nil pace lets everything through.
type pace struct {
	mu   sync.Mutex
	rate float64 // calls a second; 0: at will
	cut  time.Time
	// tokens are the calls that may go at once; counted at refilled.
	tokens   float64
	refilled time.Time
	// waiting are those who wait: closed when they may go.
	waiting struct{ prompt, scheduled []chan struct{} }
	timer   *time.Timer
	// appointed is when the last of those who come again does.
	appointed time.Time

	window        time.Time
	taken, turned int // in this window
}

// take waits until a call may go. A scheduled one does not wait behind many others: it gives up its place in the worker, and comes
// again.
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
	if p.rate == 0 {
		return nil, 0
	}
	p.refill()
	ahead := len(p.waiting.prompt)
	if scheduled {
		ahead += len(p.waiting.scheduled)
	}
	if ahead == 0 && p.tokens >= 1 {
		p.tokens--
		return nil, 0
	}
	turn = make(chan struct{})
	switch {
	case !scheduled:
		p.waiting.prompt = append(p.waiting.prompt, turn)
	case float64(len(p.waiting.scheduled)) < max(fewestWaiting, waitingTime.Seconds()*p.rate):
		p.waiting.scheduled = append(p.waiting.scheduled, turn)
	default:
		return nil, p.appoint(time.Now())
	}
	p.wake()
	return turn, 0
}

// appoint gives after what time a scheduled call is to come again: one after another, as fast as they can be let through, and
// from the beginning once that would be too far away. If all came at once, most would be sent back again.
func (p *pace) appoint(now time.Time) time.Duration {
	if first := now.Add(waitingTime); p.appointed.Before(first) || p.appointed.After(now.Add(farthest)) {
		p.appointed = first
	}
	p.appointed = p.appointed.Add(time.Duration(float64(time.Second) / p.rate))
	return p.appointed.Sub(now)
}

// leave takes somebody out who waits no more.
func (p *pace) leave(turn chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gone := func(c chan struct{}) bool { return c == turn }
	p.waiting.prompt = slices.DeleteFunc(p.waiting.prompt, gone)
	p.waiting.scheduled = slices.DeleteFunc(p.waiting.scheduled, gone)
}

// refill counts the calls that may go by now; at most those of a tenth of a second at once.
func (p *pace) refill() {
	now := time.Now()
	p.tokens = min(p.tokens+now.Sub(p.refilled).Seconds()*p.rate, max(1, p.rate/10))
	p.refilled = now
}

// wake lets go who may, and comes back for the others.
func (p *pace) wake() {
	p.refill()
	for p.tokens >= 1 {
		from := &p.waiting.prompt
		if len(*from) == 0 {
			from = &p.waiting.scheduled
		}
		if len(*from) == 0 {
			return
		}
		close((*from)[0])
		*from = (*from)[1:]
		p.tokens--
	}
	if len(p.waiting.prompt)+len(p.waiting.scheduled) == 0 || p.timer != nil {
		return
	}
	p.timer = time.AfterFunc(time.Duration(math.Ceil((1-p.tokens)/p.rate*float64(time.Second))), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.timer = nil
		p.wake()
	})
}

// told counts what became of a call, and adapts when a window is over.
func (p *pace) told(throttled bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.window.IsZero() {
		p.window = now
	}
	if throttled {
		p.turned++
	} else {
		p.taken++
	}
	switch since := now.Sub(p.window); {
	case since < paceWindow:
		return
	case since < 2*paceWindow: // else it was idle in between, and the count tells nothing
		p.adapt(since.Seconds(), now)
	}
	if p.rate > 0 && now.Sub(p.cut) > paceForgotten {
		p.rate = 0
		p.open()
	}
	p.window, p.taken, p.turned = now, 0, 0
}

// adapt sets the rate after what was counted in a window.
func (p *pace) adapt(seconds float64, now time.Time) {
	tolerated, fewest := turnedAway, fewestCalls
	if p.rate > 0 {
		tolerated, fewest = turnedAgain, 0
	}
	switch calls := p.taken + p.turned; {
	case calls >= fewest && p.turned*tolerated >= calls:
		p.rate, p.cut = max(slowest, slack*float64(p.taken)/seconds), now
		p.tokens, p.refilled = 0, now
	case p.turned == 0:
		p.rate *= math.Pow(hurry, seconds)
	}
}

// open lets everybody go.
func (p *pace) open() {
	for _, turn := range slices.Concat(p.waiting.prompt, p.waiting.scheduled) {
		close(turn)
	}
	p.waiting.prompt, p.waiting.scheduled = nil, nil
}
