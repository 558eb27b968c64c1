// Package mempool shares a bounded amount of memory among parties, such as the organizations of a service, whose
// senders decide how much they need and how fast it arrives.
//
// The party that has the least goes first. What arrives too slowly gives way while others wait, that of the party which
// has the most first. So a flood takes from itself.
package mempool

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/heap"
)

const (
	// reserve is how much is left to others when what still arrives gets memory: large contents leave room for small
	// ones, as most are.
	reserve = 3 * Step
	// While others wait, content gives way of which nothing has arrived for stepTime, and a claim which has some memory
	// and waits for more for growTime. The latter ends a deadlock of claims that all have a part of what they need.
	stepTime, growTime = 2 * time.Second, 5 * time.Second
	// mostWaiting claims of one party wait at a time; of more, the largest is refused.
	mostWaiting = 64
)

// Step is in what pieces memory is taken for content that arrives. Its sender has stepTime for each.
const Step = 1 << 20

// ErrBusy is the error of a claim that gets no memory, or had to give way.
var ErrBusy = deployments.Errorf(deployments.CodeUnavailable, "the service is busy: too much is sent to it at "+
	"once; try again")

// Pool is the memory that is shared. It is safe for concurrent use.
type Pool struct {
	size int64

	mu      sync.Mutex
	free    int64
	leaving int64            // of claims that were stopped and are not released yet
	used    map[string]int64 // by party
	kept    map[string]int64 // by party; see Keep
	holding []*Claim         // that have memory, the oldest first
	waiting []*Claim
	again   *time.Timer // looks for one that gives way; nil when none waits
}

// New returns a pool of a size in bytes.
func New(size int64) *Pool {
	return &Pool{size: size, free: size, used: map[string]int64{}, kept: map[string]int64{}}
}

// Taken returns how much memory those that have any need, in bytes, also beyond the size of the pool.
func (p *Pool) Taken() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.holding {
		if n += c.held; c.wants == 0 {
			n += max(0, c.needs-c.held)
		}
	}
	return n
}

// Claim is what one call has of a pool. It is safe for concurrent use.
type Claim struct {
	pool  *Pool
	party string
	stop  func()
	loses bool       // its memory instead of being stopped
	turn  sync.Mutex // of those that take

	held     int64
	needs    int64     // what was asked for and not returned, also beyond the size of the pool
	moved    time.Time // when something arrived last
	whole    bool
	stopped  bool
	released bool

	wants int64 // more; 0: it waits for nothing
	asked time.Time
	over  chan struct{} // is closed when it has got what it wants, or gets nothing
}

// Claim returns a claim of a party without memory. Stop ends the arrival of its content, from another goroutine, and
// must not block; nil: nothing arrives. The caller releases the claim.
func (p *Pool) Claim(party string, stop func()) *Claim {
	return &Claim{pool: p, party: party, stop: stop, whole: stop == nil}
}

// Losing returns a claim that is not stopped when it has to give way: its memory is taken back, and what it was for
// goes on without. It may take more.
func (p *Pool) Losing(party string) *Claim {
	return &Claim{pool: p, party: party, stop: func() {}, loses: true}
}

// Take waits for n more bytes, up to patience. A claim gets no more than the size of the pool, and counts as that if it
// needs more: it is alone then. What its call leaves behind takes nothing. ErrBusy: there is too little memory, or the
// claim had to give way.
func (c *Claim) Take(ctx context.Context, n int64, patience time.Duration) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	p := c.pool
	if !p.ask(c, n) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-c.over:
	case <-waiting.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.wants == 0 {
		return nil
	}
	c.wants, c.needs = 0, max(0, c.needs-n)
	p.unwait(c)
	p.give() // it may have kept others waiting
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return ErrBusy
}

// large is what there has to be room for at once; see heap.Room. What is less comes and goes in small steps, with which
// the collector keeps up.
const large = 8 * Step

// TakeRoom is Take of what is used as a few large texts: what had its place in memory has left it when TakeRoom
// returns.
func (c *Claim) TakeRoom(ctx context.Context, n int64, patience time.Duration) error {
	err := c.Take(ctx, n, patience)
	if err == nil && n >= large {
		heap.Room(n)
	}
	return err
}

// ask has a claim wait for n more bytes; false: it has them.
func (p *Pool) ask(c *Claim, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.needs += n
	if n = min(n, p.size-c.held); n <= 0 || c.released {
		return false
	}
	c.wants, c.asked, c.over = n, time.Now(), make(chan struct{})
	if c.stopped {
		close(c.over)
		return true
	}
	p.waiting = append(p.waiting, c)
	p.refuseLargest(c.party)
	p.give()
	return true
}

// Moved says that something of the content has arrived, or was sent.
func (c *Claim) Moved() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.moved = time.Now()
}

// Whole says that nothing more arrives, so that the claim gives way only if it waits for more memory. It reports false
// when it had to before.
func (c *Claim) Whole() bool {
	p := c.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	c.whole = true
	return !c.stopped
}

// Sending says that what the claim has is being sent: it gives way again if that takes too long.
func (c *Claim) Sending() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.whole, c.moved = c.stop == nil, time.Now()
	c.pool.give() // whoever waits looks at it from now on
}

// Release gives the memory back. A claim may be released more than once.
func (c *Claim) Release() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.released = true
	c.pool.drop(c)
}

// Return gives n bytes back that were taken, and the claim keeps the others. What it waits for counts as not taken.
func (c *Claim) Return(n int64) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.needs = max(0, c.needs-n)
	c.pool.takeBack(c, min(c.held, c.held+c.wants-c.needs))
	c.pool.give()
}

// Shrink gives all back but n bytes.
func (c *Claim) Shrink(n int64) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.needs = min(c.needs, n)
	c.pool.takeBack(c, c.held-n)
	c.pool.give()
}

// Split moves n bytes of a claim, as many as it has, to a new one of its party. That does not give way before Sending
// is called, and then loses its memory as one of Losing does.
func (c *Claim) Split(n int64) *Claim {
	p := c.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	part := &Claim{pool: p, party: c.party, stop: func() {}, loses: true, whole: true, moved: time.Now()}
	if n = min(n, c.held); n <= 0 || c.stopped {
		return part
	}
	c.held, c.needs = c.held-n, max(0, c.needs-n)
	if c.held == 0 {
		p.holding = without(p.holding, c)
	}
	part.held, part.needs = n, n
	p.holding = append(p.holding, part)
	return part
}

// Drop gives the memory back, and the claim may take more.
func (c *Claim) Drop() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.pool.drop(c)
}

// drop takes the memory of a claim back.
func (p *Pool) drop(c *Claim) {
	p.unwait(c)
	c.needs = 0
	p.takeBack(c, c.held)
	p.give()
}

// takeBack takes n bytes of a claim back.
func (p *Pool) takeBack(c *Claim, n int64) {
	if n <= 0 {
		return
	}
	p.free, c.held = p.free+n, c.held-n
	if c.stopped {
		p.leaving -= n
	}
	if p.used[c.party] -= n; p.used[c.party] == 0 {
		delete(p.used, c.party)
	}
	if c.held == 0 {
		p.holding = without(p.holding, c)
	}
}

func without(list []*Claim, c *Claim) []*Claim {
	return slices.DeleteFunc(list, func(one *Claim) bool { return one == c })
}

// give gives memory to those that wait, for as long as there is any.
func (p *Pool) give() {
	for next := p.next(); next != nil; next = p.next() {
		if !p.clear(next) {
			return
		}
		n := next.wants
		p.free, p.used[next.party], next.held, next.wants = p.free-n, p.used[next.party]+n, next.held+n, 0
		if next.moved = time.Now(); next.held == n {
			p.holding = append(p.holding, next)
		}
		p.unwait(next)
	}
}

// unwait ends the waiting of a claim.
func (p *Pool) unwait(c *Claim) {
	if before := len(p.waiting); before > 0 {
		if p.waiting = without(p.waiting, c); len(p.waiting) < before {
			close(c.over)
		}
	}
}

// next returns the claim that waits whose party would have the least with it; see first.
func (p *Pool) next() (next *Claim) {
	of := map[string]*Claim{}
	for _, c := range p.waiting {
		if known := of[c.party]; known == nil || first(c, known) {
			of[c.party] = c
		}
	}
	least := int64(0)
	for _, c := range p.waiting {
		with := p.used[c.party] + c.wants
		if of[c.party] == c && (next == nil || with < least || with == least && c.asked.Before(next.asked)) {
			next, least = c, with
		}
	}
	return next
}

// first reports whether a claim gets memory before another one of its party: one whose content has arrived, because
// what arrives beside it would keep it waiting until it gives way; then the smaller, and of equal ones that which has
// the most. So contents that do not fit together arrive one after the other, and not all of them in part.
func first(c, other *Claim) bool {
	switch {
	case c.whole != other.whole:
		return c.whole
	case c.wants != other.wants:
		return c.wants < other.wants
	case c.held != other.held:
		return c.held > other.held
	}
	return c.asked.Before(other.asked)
}

// clear reports whether there is the memory that a claim wants. If not, it has others give way.
func (p *Pool) clear(next *Claim) bool {
	needed := next.wants
	if !next.whole {
		needed = min(needed+reserve, p.size-next.held)
	}
	for p.free+p.leaving < needed {
		slow, wait := p.slow(next)
		if slow == nil {
			p.retry(wait)
			return false
		}
		p.unwait(slow)
		if slow.loses {
			p.takeBack(slow, slow.held)
			continue
		}
		slow.stopped = true
		p.leaving += slow.held
		if !slow.whole {
			slow.stop()
		}
	}
	return p.free >= needed // those that were stopped leave in a moment
}

// slow returns the claim that gives way to another one, or in what time there may be one; zero: when one leaves.
func (p *Pool) slow(next *Claim) (slow *Claim, wait time.Duration) {
	for _, c := range p.holding {
		left := stepTime - time.Since(c.moved)
		if c.wants > 0 {
			left = growTime - time.Since(c.asked)
		}
		switch {
		case c.stopped || c == next || c.whole && c.wants == 0:
		case left > 0:
			if wait == 0 || left < wait {
				wait = left
			}
		case slow == nil || p.used[c.party] > p.used[slow.party]:
			slow = c
		}
	}
	return slow, wait
}

// retry gives memory again after a time.
func (p *Pool) retry(after time.Duration) {
	if after <= 0 || p.again != nil {
		return
	}
	p.again = time.AfterFunc(after, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.again = nil
		p.give()
	})
}

// refuseLargest refuses the largest of the waiting claims of a party when there are too many.
func (p *Pool) refuseLargest(party string) {
	var largest *Claim
	count := 0
	for _, c := range p.waiting {
		if c.party != party {
			continue
		}
		if count++; largest == nil || c.wants >= largest.wants {
			largest = c
		}
	}
	if count > mostWaiting {
		p.unwait(largest)
	}
}
