package runlink

import (
	"context"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// carryDelay is how long a poll or a result waits for calls to carry, after a reply was delivered: a program that is
// blocked on one reply usually makes its next call at once.
const carryDelay = 2 * time.Millisecond

// poll receives replies until the context or the Run ends.
func (l *Link) poll(ctx context.Context) error {
	poll := deployments.Poll{Epoch: l.epoch}
	replied := false
	for {
		carried := l.openPoll(ctx, replied)
		poll.Messages = carried.content()
		var got deployments.Replies
		err := reach(ctx, func() (err error) { got, err = l.runs.Poll(ctx, l.update, poll); return err })
		if err != nil {
			return err
		}
		l.closePoll(carried)
		poll.Cursor = max(poll.Cursor, got.Cursor)
		replied = len(got.Replies) > 0
		l.forgetEarlierCalls()
		for _, r := range got.Replies {
			l.deliver(r)
		}
		if got.Done {
			return ErrRunEnded
		}
	}
}

// openPoll dequeues what the next poll carries; the poll counts as open from then on. After replies, the program gets a
// moment to make its next calls.
func (l *Link) openPoll(ctx context.Context, replied bool) *batch {
	if replied {
		l.awaitCalls(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.polling = true
	defer wake(l.toSignal)
	if !replied {
		return nil
	}
	return l.carry()
}

// closePoll notes that a poll has returned, with what it carried.
func (l *Link) closePoll(carried *batch) {
	l.delivered(func(b *batch) bool { return b == carried })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.polling = false
}

// forgetEarlierCalls makes awaitCalls wait for calls that are made from now on: earlier ones are in the queue or sent.
func (l *Link) forgetEarlierCalls() {
	select {
	case <-l.toCarry:
	default:
	}
}

// awaitCalls gives the program a moment to make its next calls.
func (l *Link) awaitCalls(ctx context.Context) {
	timer := time.NewTimer(carryDelay)
	defer timer.Stop()
	select {
	case <-l.toCarry:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// deliver hands a reply to its caller and reports whether there was one. Repeats and replies of other epochs have none.
// The reply also confirms the batch that carried its call.
func (l *Link) deliver(r engine.Reply) bool {
	if r.Epoch != l.epoch {
		return false
	}
	l.delivered(func(b *batch) bool { return slices.Contains(b.calls, r.Seq) })
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting, ok := l.waiting[r.Seq]
	if ok {
		delete(l.waiting, r.Seq)
		waiting <- r
	}
	return ok
}

// batch is what a poll or a result carries: calls, whose replies acknowledge it.
type batch struct {
	messages deployments.Messages
	calls    []int // their sequence numbers
}

// content returns the messages of a batch; nil for none.
func (b *batch) content() *deployments.Messages {
	if b == nil {
		return nil
	}
	return &b.messages
}

// carry dequeues a batch; nil when the queue is empty or has a notice, which nothing would acknowledge. l.mu is held.
func (l *Link) carry() *batch {
	queue := l.sendable()
	if len(queue) == 0 || !onlyCalls(queue) {
		return nil
	}
	b := &batch{messages: l.dequeue()}
	for _, q := range queue[:len(b.messages.Items)] {
		b.calls = append(b.calls, q.call)
	}
	l.carried = append(l.carried, b)
	return b
}

// delivered notes that batches have been delivered. Those that were noted before are ignored.
func (l *Link) delivered(is func(*batch) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.carried = slices.DeleteFunc(l.carried, func(b *batch) bool {
		if is(b) {
			l.acknowledge(len(b.calls))
			return true
		}
		return false
	})
}

// retransmit sends a batch by signal. The Run ignores messages that it has received before.
func (l *Link) retransmit(ctx context.Context, b *batch) error {
	err := reach(ctx, func() error { return l.runs.Signal(ctx, l.update, b.messages) })
	if err == nil {
		l.delivered(func(other *batch) bool { return other == b })
	}
	return err
}
