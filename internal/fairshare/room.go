// Package fairshare shares what a process has among those who ask for it before it is known who they are: memory for
// what they send, and connections.
package fairshare

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Rules say what a Room has, and how it is shared.
type Rules struct {
	// Size is what all have at a time; one takes at least Least of it.
	Size, Least int64
	// Reserve is how much is left to others when one gets its place, in times its own size: large ones leave room for
	// small ones, as most are.
	Reserve int64
	// Share is how long one keeps its place while others wait, if it did not stay.
	Share time.Duration
	// Patience is how long one waits for its place.
	Patience time.Duration
	// Waiting is how many of one host wait at a time; of more, the largest is refused. 0: any number.
	Waiting int
}

// ErrFull is the error about one that got no place.
var ErrFull = errors.New("there is no room for it")

// Room shares an amount among hosts, or whatever else has a name. The host that has the least goes first, of those of
// one host the smallest, and the host that has the most gives way first, with the one that has been there longest: a
// flood takes from itself. A Room is safe for concurrent use.
type Room struct {
	rules Rules

	mu      sync.Mutex
	free    int64
	leaving int64 // of those that were stopped and are still there
	hosts   map[string]*host
	waiting map[*host]bool // hosts of which some wait
	// yielding are those that have a place and may have to give way, the oldest first.
	yielding []*Place
	again    *time.Timer // looks for one that gives way; nil when none waits
}

// host is what the room has of one host.
type host struct {
	name    string
	used    int64
	waiting []*Place // the smallest first
}

// Place is the place of one, or its wait for one.
type Place struct {
	host    *host
	size    int64
	asked   time.Time
	begun   time.Time     // zero: it has no place
	placed  chan struct{} // is closed when it has one, or gets none
	stop    func()        // has it give way
	stopped bool
}

// NewRoom returns an empty room.
func NewRoom(r Rules) *Room {
	return &Room{rules: r, free: r.Size, hosts: map[string]*host{}, waiting: map[*host]bool{}}
}

// Host returns the name of an address: of IPv6 the network, whose addresses are one party's.
func Host(address string) string {
	at, err := netip.ParseAddr(address)
	if err != nil || !at.Is6() || at.Is4In6() {
		return address
	}
	network, _ := at.WithZone("").Prefix(64) // never fails
	return network.String()
}

// Enter waits for a place of a size; ErrFull when there was none in time. Stop, which must not block or call the room,
// may be called from then on until Stay or Leave: the one whose place it is must leave soon.
func (r *Room) Enter(ctx context.Context, name string, size int64, stop func()) (*Place, error) {
	p := &Place{size: max(size, r.rules.Least), asked: time.Now(), placed: make(chan struct{}), stop: stop}
	r.mu.Lock()
	r.queue(p, name)
	r.give()
	r.mu.Unlock()
	waiting, cancel := context.WithTimeout(ctx, r.rules.Patience)
	defer cancel()
	select {
	case <-p.placed:
	case <-waiting.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.begun.IsZero() {
		return p, nil
	}
	r.unqueue(p)
	r.give() // it may have kept others waiting
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, ErrFull
}

// Stay keeps a place until Leave: others no longer take it. It reports false if that came too late.
func (r *Room) Stay(p *Place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.yielding = slices.DeleteFunc(r.yielding, func(one *Place) bool { return one == p })
	return !p.stopped
}

// Leave gives a place back.
func (r *Room) Leave(p *Place) {
	r.Stay(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += p.size
	if p.stopped {
		r.leaving -= p.size
	}
	p.host.used -= p.size
	r.forget(p.host)
	r.give()
}

// give gives places to those that wait, for as long as there are any.
func (r *Room) give() {
	for next := r.next(); next != nil; next = r.next() {
		if !r.clear(next.size) {
			return
		}
		next.host.used += next.size // before unqueue, which forgets a host that has nothing
		r.unqueue(next)
		r.free -= next.size
		next.begun = time.Now()
		r.yielding = append(r.yielding, next)
		close(next.placed)
	}
}

// next returns the one that waits whose host would have the least with it.
func (r *Room) next() (next *Place) {
	for h := range r.waiting {
		first := h.waiting[0]
		if next == nil {
			next = first
			continue
		}
		mine, least := h.used+first.size, next.host.used+next.size
		if mine < least || mine == least && first.asked.Before(next.asked) {
			next = first
		}
	}
	return next
}

// clear reports whether there is a place of a size. If not, it has others give way that have had their time.
func (r *Room) clear(size int64) bool {
	needed := (1 + r.rules.Reserve) * size
	for r.free+r.leaving < needed {
		slow, wait := r.slow()
		if slow == nil {
			r.retry(wait)
			return false
		}
		slow.stopped = true
		r.leaving += slow.size
		slow.stop()
	}
	return r.free >= needed // those that were stopped leave in a moment
}

// slow returns the one that gives way, or in what time there may be one; zero: when one leaves.
func (r *Room) slow() (slow *Place, wait time.Duration) {
	for _, p := range r.yielding {
		switch left := r.rules.Share - time.Since(p.begun); {
		case p.stopped:
		case left > 0: // and later ones have had less
			return slow, left
		case slow == nil || p.host.used > slow.host.used:
			slow = p
		}
	}
	return slow, 0
}

// retry gives places again after a time.
func (r *Room) retry(after time.Duration) {
	if after <= 0 || r.again != nil {
		return
	}
	r.again = time.AfterFunc(after, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.again = nil
		r.give()
	})
}

// queue has one wait. One of its host gets no place when there are too many.
func (r *Room) queue(p *Place, name string) {
	p.host = r.hosts[name]
	if p.host == nil {
		p.host = &host{name: name}
		r.hosts[name] = p.host
	}
	queue := append(p.host.waiting, p)
	slices.SortStableFunc(queue, func(a, b *Place) int { return cmp.Compare(a.size, b.size) })
	p.host.waiting, r.waiting[p.host] = queue, true
	if r.rules.Waiting > 0 && len(queue) > r.rules.Waiting {
		last := queue[len(queue)-1]
		r.unqueue(last)
		close(last.placed)
	}
}

func (r *Room) unqueue(p *Place) {
	p.host.waiting = slices.DeleteFunc(p.host.waiting, func(one *Place) bool { return one == p })
	if len(p.host.waiting) == 0 {
		delete(r.waiting, p.host)
	}
	r.forget(p.host)
}

// forget removes a host of which there is nothing.
func (r *Room) forget(h *host) {
	if h.used == 0 && len(h.waiting) == 0 && r.hosts[h.name] == h {
		delete(r.hosts, h.name)
	}
}
