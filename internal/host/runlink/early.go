package runlink

import (
	"context"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// retransmitAfter is how long a reply to what a result carries may take before the batch is retransmitted.
const retransmitAfter = 10 * time.Second

// ReplyEarly gives the program a reply from where its step or plan was made, and reports whether the program waited for
// it. A program that is blocked on this reply alone usually makes its next call at once: next is what the activity's
// result is to carry, which saves a signal.
func (l *Link) ReplyEarly(ctx context.Context, r engine.Reply) (delivered bool, next *deployments.Messages) {
	alone := l.holdBack(r.Seq)
	if delivered = l.deliver(r); delivered && alone {
		l.awaitCalls(ctx)
	}
	return delivered, l.release(delivered && alone)
}

// holdBack keeps calls out of signals until release is called, and reports whether the program waits for this reply
// alone. The calls that awaitCalls waits for are those made from here on.
func (l *Link) holdBack(seq int) (alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds++
	_, waits := l.waiting[seq]
	l.forgetEarlierCalls()
	return waits && len(l.waiting) == 1
}

// release ends holdBack and returns the calls that were made meanwhile, if carry says so. A result may be lost: a batch
// without a reply is retransmitted after a while.
func (l *Link) release(carry bool) *deployments.Messages {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds--
	defer wake(l.toSignal)
	if !carry {
		return nil
	}
	b := l.carry()
	if b != nil {
		time.AfterFunc(retransmitAfter, func() { l.retransmitLost(b) })
	}
	return b.content()
}

// retransmitLost retransmits a batch that was not delivered, until it is or the link ends.
func (l *Link) retransmitLost(b *batch) {
	l.mu.Lock()
	lost := slices.Contains(l.carried, b)
	l.mu.Unlock()
	if !lost {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-l.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = l.retransmit(ctx, b)
}
