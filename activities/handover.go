package activities

import (
	"context"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// remindAfter is how long an answer to what a result carried may take before it is said again.
const remindAfter = 10 * time.Second

// handOver gives the program a reply from where its step or plan was made, and tells whether the program waited for it.
// A program that waits for nothing else mostly asks on at once: what it asks is for the result to carry, which saves a
// signal.
func (s *session) handOver(ctx context.Context, r engine.Reply) (answered bool, next *deployments.Messages) {
	talk := s.talk.Load()
	if talk == nil {
		return false, nil
	}
	last := talk.lend(r.Seq)
	if answered = talk.answer(r); answered && last {
		talk.asksOn(ctx)
	}
	return answered, talk.lent(answered && last)
}

// lend keeps questions back from signals until lent, and tells whether the program waits for nothing but one answer.
func (c *conversation) lend(seq int) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lending++
	_, waits := c.waiting[seq]
	select { // what was asked before is in the queue, or on its way
	case <-c.asked:
	default:
	}
	return waits && len(c.waiting) == 1
}

// asksOn gives the program a moment to ask.
func (c *conversation) asksOn(ctx context.Context) {
	timer := time.NewTimer(carryFor)
	defer timer.Stop()
	select {
	case <-c.asked:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// lent takes the questions that have come since lend, if they are wanted. Nobody here knows whether a result arrives:
// so what has no answer after a while is said again.
func (c *conversation) lent(wanted bool) *deployments.Messages {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lending--
	defer wake(c.spoken)
	if !wanted {
		return nil
	}
	p := c.pack()
	if p != nil {
		time.AfterFunc(remindAfter, func() { c.remind(p) })
	}
	return p.content()
}

// remind says a parcel again that has not arrived, until it is heard or the conversation ends.
func (c *conversation) remind(p *parcel) {
	c.mu.Lock()
	missing := slices.Contains(c.parcels, p)
	c.mu.Unlock()
	if !missing {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-c.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = c.resend(ctx, p)
}
