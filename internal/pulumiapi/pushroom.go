package pulumiapi

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// Bounds of messages whose signature cannot be checked before they are read.
const (
	// pushMemory is what all of them take at a time; one takes at least leastPush of it.
	pushMemory, leastPush = 64 << 20, 16 << 10
	// pushReserve is how much is left to others when one gets its place, in times its own size: large messages leave room
	// for small ones, as most are.
	pushReserve = 3
	// While others wait, one that takes longer than pushShare to arrive gives way.
	pushShare = 2 * time.Second
	// placePatience is how long one waits for its place, pushPatience how long it may take in all. GitHub and GitLab give
	// up after ten seconds.
	placePatience, pushPatience = 5 * time.Second, 10 * time.Second
	// waitingPushes of one host wait at a time; of more, the largest is refused.
	waitingPushes = 64
)

// pushRoom shares memory among the messages of git servers. Whether the sender of one has the secret is known when it
// is whole. So the host that has the least goes first, of its messages the smallest, and the host that has the most
// gives way first: a flood takes from itself. It is safe for concurrent use.
type pushRoom struct {
	mu       sync.Mutex
	free     int64
	leaving  int64              // of those that were stopped and are still there
	used     map[string]int64   // by host
	arriving []*push            // that have a place and are not whole, the oldest first
	waiting  map[string][]*push // by host, the smallest first
	again    *time.Timer        // looks for one that gives way; nil when none waits
}

// push is one message.
type push struct {
	host    string
	size    int64
	asked   time.Time
	begun   time.Time     // zero: it has no place
	placed  chan struct{} // is closed when it has one, or gets none
	stop    func()        // ends its reading
	stopped bool
}

func newPushRoom() *pushRoom {
	return &pushRoom{free: pushMemory, used: map[string]int64{}, waiting: map[string][]*push{}}
}

// errPushes is the error about a message without a place.
var errPushes = deployments.Errorf(deployments.CodeUnavailable, "too many messages of git servers arrive at a time: "+
	"send it again")

// pushHost returns the host that a message counts for: of IPv6, the network, whose addresses are one party's.
func pushHost(host string) string {
	address, err := netip.ParseAddr(host)
	if err != nil || !address.Is6() || address.Is4In6() {
		return host
	}
	network, _ := address.WithZone("").Prefix(64) // never fails
	return network.String()
}

// enter waits for a place of a size. Stop, which must not block, may be called from then on until arrived or leave.
func (r *pushRoom) enter(ctx context.Context, host string, size int64, stop func()) (*push, error) {
	p := &push{host: host, size: max(size, leastPush), asked: time.Now(), placed: make(chan struct{}), stop: stop}
	r.mu.Lock()
	r.queue(p)
	r.give()
	r.mu.Unlock()
	waiting, cancel := context.WithTimeout(ctx, placePatience)
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
	return nil, errPushes
}

// arrived says that a message is read, whole or not. It reports false when it had to give way.
func (r *pushRoom) arrived(p *push) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arriving = slices.DeleteFunc(r.arriving, func(one *push) bool { return one == p })
	return !p.stopped
}

// leave gives the place of a message back.
func (r *pushRoom) leave(p *push) {
	r.arrived(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += p.size
	if p.stopped {
		r.leaving -= p.size
	}
	if r.used[p.host] -= p.size; r.used[p.host] == 0 {
		delete(r.used, p.host)
	}
	r.give()
}

// give gives places to those that wait, for as long as there are any.
func (r *pushRoom) give() {
	for next := r.next(); next != nil; next = r.next() {
		if !r.clear(next.size) {
			return
		}
		r.unqueue(next)
		r.free -= next.size
		r.used[next.host] += next.size
		next.begun = time.Now()
		r.arriving = append(r.arriving, next)
		close(next.placed)
	}
}

// next returns the one that waits whose host would have the least with it.
func (r *pushRoom) next() (next *push) {
	for host, queue := range r.waiting {
		first := queue[0]
		if next == nil {
			next = first
			continue
		}
		mine, least := r.used[host]+first.size, r.used[next.host]+next.size
		if mine < least || mine == least && first.asked.Before(next.asked) {
			next = first
		}
	}
	return next
}

// clear reports whether there is a place of a size. If not, it has messages give way that have had their time.
func (r *pushRoom) clear(size int64) bool {
	needed := (1 + pushReserve) * size
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

// slow returns the message that gives way, or in what time there may be one; zero: when one leaves.
func (r *pushRoom) slow() (slow *push, wait time.Duration) {
	for _, p := range r.arriving {
		switch left := pushShare - time.Since(p.begun); {
		case p.stopped:
		case left > 0: // and later ones have had less
			return slow, left
		case slow == nil || r.used[p.host] > r.used[slow.host]:
			slow = p
		}
	}
	return slow, 0
}

// retry gives places again after a time.
func (r *pushRoom) retry(after time.Duration) {
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

// queue has a message wait. One of its host gets no place when there are too many.
func (r *pushRoom) queue(p *push) {
	queue := append(r.waiting[p.host], p)
	slices.SortStableFunc(queue, func(a, b *push) int { return cmp.Compare(a.size, b.size) })
	r.waiting[p.host] = queue
	if len(queue) > waitingPushes {
		last := queue[len(queue)-1]
		r.unqueue(last)
		close(last.placed)
	}
}

func (r *pushRoom) unqueue(p *push) {
	rest := slices.DeleteFunc(r.waiting[p.host], func(one *push) bool { return one == p })
	if len(rest) == 0 {
		delete(r.waiting, p.host)
		return
	}
	r.waiting[p.host] = rest
}
