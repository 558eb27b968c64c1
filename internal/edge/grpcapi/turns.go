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
//
// Those that wait are kept by sender, so that a call looks at senders and never at all calls: else the calls of one
// organization would take the time of everybody's.
type turns struct {
	size int

	mu    sync.Mutex
	taken []*turn // the oldest first
	all   group
	given uint64      // how many places were given
	again *time.Timer // looks for one that gives way; nil when none waits
}

// group is what the senders of an organization have, or those of one of its hosts, or one token; all has everybody's.
type group struct {
	taken, waiting int
	last           uint64            // which of all places was given to it last
	parts          map[string]*group // of those that have something
	queue          []*turn           // of a token: those that wait, the oldest first
}

type turn struct {
	of      sender
	since   time.Time     // it has its place
	entered chan struct{} // is closed then
	stop    func()        // it gives way; must not block
}

func newTurns(size int) *turns { return &turns{size: size} }

// levels returns the groups of a sender: of its organization, its host there, and its token.
func (t *turns) levels(s sender) (levels [len(sender{})]*group) {
	at := &t.all
	for i, name := range s {
		next := at.parts[name]
		if next == nil {
			if next = (&group{}); at.parts == nil {
				at.parts = map[string]*group{}
			}
			at.parts[name] = next
		}
		levels[i], at = next, next
	}
	return levels
}

// count counts places and waiting calls of a sender, and forgets the groups that have none.
func (t *turns) count(s sender, taken, waiting int) {
	above := &t.all
	for i, g := range t.levels(s) {
		g.taken, g.waiting = g.taken+taken, g.waiting+waiting
		if g.taken+g.waiting == 0 {
			delete(above.parts, s[i])
		}
		above = g
	}
	t.all.taken, t.all.waiting = t.all.taken+taken, t.all.waiting+waiting
}

// enter waits for a place, up to patience. Stop is called, from another goroutine, when it has to give way.
func (t *turns) enter(ctx context.Context, of sender, patience time.Duration, stop func()) (leave func(), err error) {
	one := &turn{of: of, entered: make(chan struct{}), stop: stop}
	t.mu.Lock()
	t.count(of, 0, 1)
	token := t.levels(of)[len(of)-1]
	token.queue = append(token.queue, one)
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
	} else {
		t.unwait(one)
	}
	t.give()
}

func (t *turns) remove(i int) {
	of := t.taken[i].of
	t.taken = slices.Delete(t.taken, i, i+1)
	t.count(of, -1, 0)
}

// unwait takes one out of those that wait, if it is among them.
func (t *turns) unwait(one *turn) {
	token := t.levels(one.of)[len(one.of)-1]
	i := slices.Index(token.queue, one)
	if i >= 0 {
		token.queue = slices.Delete(token.queue, i, i+1)
		t.count(one.of, 0, -1)
		return
	}
	t.count(one.of, 0, 0)
}

// fewer compares what two senders have, of which the first one gets one more.
func (t *turns) fewer(next, other sender) bool {
	for level := range next {
		if next[level] != other[level] {
			return t.levels(next)[level].taken+1 < t.levels(other)[level].taken
		}
	}
	return false
}

// give gives places to those that wait, for as long as there are any.
func (t *turns) give() {
	for t.all.waiting > 0 {
		one := t.next()
		if len(t.taken) >= t.size && !t.clear(one.of) {
			return
		}
		t.given++
		for _, g := range t.levels(one.of) {
			g.last = t.given
		}
		one.since = time.Now()
		t.taken = append(t.taken, one)
		t.count(one.of, 1, 0)
		t.unwait(one)
		close(one.entered)
	}
}

// next returns the one that waits whose sender has the least, and of those that have as much, got a place before the
// others.
func (t *turns) next() *turn {
	at := &t.all
	for len(at.parts) > 0 {
		var least *group
		for _, g := range at.parts {
			if g.waiting > 0 && (least == nil || g.taken < least.taken || g.taken == least.taken && g.last < least.last) {
				least = g
			}
		}
		at = least
	}
	return at.queue[0]
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
