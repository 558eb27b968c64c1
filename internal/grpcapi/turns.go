package grpcapi

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turnTime is how long a party that has more places than another one keeps each of them while that one waits.
const turnTime = 2 * time.Second

// sender is whose a first message is: of an organization, from a host, and with a token.
type sender [3]string

// turns are places for what senders do for a short time. The organization that has the fewest goes first, of one
// organization the host, and of one host the token, of which anybody makes as many as they like. While it
// waits, one that has more gives way with what has taken longest. They are safe for concurrent use.
type turns struct {
	size int

	mu             sync.Mutex
	taken, waiting []*turn                       // the oldest first
	of             [len(sender{})]map[sender]int // by organization, by that with the host, and by all three
	again          *time.Timer                   // looks for one that gives way; nil when none waits
}

type turn struct {
	of      sender
	since   time.Time     // it has its place
	entered chan struct{} // is closed then
	stop    func()        // it gives way; must not block
}

func newTurns(size int) *turns {
	t := &turns{size: size}
	for level := range t.of {
		t.of[level] = map[sender]int{}
	}
	return t
}

// upTo returns the part of a sender that counts at a level.
func (s sender) upTo(level int) (part sender) {
	copy(part[:level+1], s[:])
	return part
}

// has returns how many places there are of a sender at each level.
func (t *turns) has(s sender) (places [len(sender{})]int) {
	for level := range places {
		places[level] = t.of[level][s.upTo(level)]
	}
	return places
}

// enter waits for a place, up to patience. Stop is called, from another goroutine, when it has to give way.
func (t *turns) enter(ctx context.Context, of sender, patience time.Duration, stop func()) (leave func(), err error) {
	one := &turn{of: of, entered: make(chan struct{}), stop: stop}
	t.mu.Lock()
	t.waiting = append(t.waiting, one)
	t.give()
	t.mu.Unlock()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-one.entered:
		return func() { t.leave(one) }, nil
	case <-waiting.Done():
		t.leave(one)
	}
	if ctx.Err() != nil {
		return func() {}, ctx.Err()
	}
	return func() {}, busy("too much is sent to it at once")
}

// leave gives a place back, or waits no more for one.
func (t *turns) leave(one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.taken, one); i >= 0 {
		t.remove(i)
	} else if i := slices.Index(t.waiting, one); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.give()
}

func (t *turns) remove(i int) {
	of := t.taken[i].of
	t.taken = slices.Delete(t.taken, i, i+1)
	t.count(of, -1)
}

// count counts a place of a sender.
func (t *turns) count(s sender, by int) {
	for level := range s {
		part := s.upTo(level)
		if t.of[level][part] += by; t.of[level][part] == 0 {
			delete(t.of[level], part)
		}
	}
}

// fewer compares what two senders have, of which the first one gets one more.
func (t *turns) fewer(next, other sender) bool {
	for level := range next {
		if next[level] != other[level] {
			return t.has(next)[level]+1 < t.has(other)[level]
		}
	}
	return false
}

// give gives places to those that wait, for as long as there are any.
func (t *turns) give() {
	for len(t.waiting) > 0 {
		next := t.next()
		if len(t.taken) >= t.size && !t.clear(t.waiting[next].of) {
			return
		}
		one := t.waiting[next]
		t.waiting = slices.Delete(t.waiting, next, next+1)
		one.since = time.Now()
		t.taken = append(t.taken, one)
		t.count(one.of, 1)
		close(one.entered)
	}
}

// next returns the one that waits whose sender has the least.
func (t *turns) next() (next int) {
	for i := range t.waiting {
		has, least := t.has(t.waiting[i].of), t.has(t.waiting[next].of)
		if slices.Compare(has[:], least[:]) < 0 {
			next = i
		}
	}
	return next
}

// clear makes a place of a sender that has more free, if one has had it long enough.
func (t *turns) clear(next sender) bool {
	last := -1
	for i, one := range t.taken {
		if t.fewer(next, one.of) && (last < 0 || t.fewer(t.taken[last].of, one.of)) {
			last = i
		}
	}
	if last < 0 {
		return false
	}
	one := t.taken[last]
	if left := turnTime - time.Since(one.since); left > 0 {
		t.retry(left)
		return false
	}
	t.remove(last)
	one.stop()
	return true
}

// retry gives places again after a time.
func (t *turns) retry(after time.Duration) {
	if t.again != nil {
		return
	}
	t.again = time.AfterFunc(after, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.again = nil
		t.give()
	})
}
