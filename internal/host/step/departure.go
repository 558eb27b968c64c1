package step

import (
	"context"
	"sync"

	"github.com/deployctl/deployctl/internal/host/failure"
)

// departure is the end of a worker. Temporal may have given it a step that it never saw: a poll that is cancelled while
// the server hands a task over loses the task. The update hears of that step only by a heartbeat timeout, as if its
// call had been sent and its answer lost. So a worker that ends in order leaves word of what it has begun.
type departure struct {
	mu   sync.RWMutex
	told bool // no call is sent any more
}

// Depart lets no step send a call any more.
func (l *Answers) Depart() {
	l.departure.mu.Lock()
	defer l.departure.mu.Unlock()
	l.departure.told = true
}

// Depart stores which calls of the update the worker has sent, after Answers.Depart. Without it, as after a kill, every
// lost step may have had its effect.
func (s *Steps) Depart(ctx context.Context, worker string) {
	begun := map[int]int{}
	note := func(op any, round int) { begun[op.(int)] = max(begun[op.(int)], round) }
	s.sent.Range(func(op, at any) bool { note(op, at.(*attempt).round); return true }) // first: they become spent
	s.spent.Range(func(op, round any) bool { note(op, round.(int)); return true })
	_ = failure.Persist(ctx, failure.MayPass, func() error { // without it, the steps count as lost
		if there, err := s.store.IsStack(ctx, s.update.StackName, s.stackID); err != nil || !there {
			return err
		}
		return s.store.Updates.PutDeparture(ctx, s.update, worker, begun)
	})
}

// send notes that an attempt sends its call, unless the worker has told already what it had begun, or an earlier
// attempt is under way: the server counts that as ended, but its call still runs here.
func (at *attempt) send() error {
	d := &at.session.answers.departure
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.told {
		return failure.Postponed("the worker stops", 0)
	}
	if _, underWay := at.session.sent.LoadOrStore(at.step.Op, at); underWay {
		return failure.UnknownOutcome("an earlier attempt is still under way")
	}
	return nil
}

// neverSent reports whether the worker that was given the attempt has ended and left word that it did not send its
// call.
func (at *attempt) neverSent(ctx context.Context) (bool, error) {
	if at.former == "" {
		return false, nil
	}
	begun, told, err := at.session.store.Updates.Departure(ctx, at.session.update, at.former)
	return told && begun[at.step.Op] < at.round, err
}
