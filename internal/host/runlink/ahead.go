package runlink

import (
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// gatherFor is how long messages that are answered already are gathered, so that they go to the Run in few signals.
// Nobody waits for them.
const gatherFor = 200 * time.Millisecond

// AnswerAhead makes the link offer each message, in order, instead of sending it, until GoOn is called. Answer or GoOn
// sends it. offer must not block, nor call the link.
func (l *Link) AnswerAhead(offer func(deployments.Message)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offer = offer
}

// Answer replies to a call that was offered, and sends its message with what the Run has to know about that, once what
// was offered before it is sent.
func (l *Link) Answer(reply engine.Reply, ahead engine.Ahead) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.queue, func(q queued) bool { return q.call == reply.Seq })
	if i < 0 {
		return
	}
	q := &l.queue[i]
	switch m := &q.message; {
	case m.Registered != nil:
		m.Registered.Ahead = &ahead
	case m.OutputsRegistered != nil:
		m.OutputsRegistered.Ahead = &ahead
	}
	q.offered, q.call, q.size = false, 0, sizeOf(q.message) // there is no other reply
	if waiting, ok := l.waiting[reply.Seq]; ok {
		delete(l.waiting, reply.Seq)
		waiting <- reply
	}
	l.gather()
}

// gather lets messages be sent a little later, so that more of them are sent together; the caller holds the lock.
func (l *Link) gather() {
	if l.gathering {
		return
	}
	l.gathering = true
	time.AfterFunc(gatherFor, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gathering = false
		wake(l.toSignal)
	})
}

// GoOn sends everything that was offered and not answered, and from now on every message at once.
func (l *Link) GoOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offer, l.gathering = nil, false
	for i := range l.queue {
		l.queue[i].offered = false
	}
	wake(l.toSignal)
	wake(l.toCarry)
}

// sendable returns what may be sent of the queue; l.mu is held.
func (l *Link) sendable() []queued {
	if l.gathering {
		return nil
	}
	if i := slices.IndexFunc(l.queue, func(q queued) bool { return q.offered }); i >= 0 {
		return l.queue[:i]
	}
	return l.queue
}
