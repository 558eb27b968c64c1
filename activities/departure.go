package activities

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// departure is the end of a worker. Temporal may have given it a step that it never saw: a poll that is cancelled while
// the server hands a task over loses the task. The update hears of that step only by a heartbeat timeout, as if its
// call had been sent and its answer lost. So a worker that ends in order leaves word of what it has begun.
type departure struct {
	mu   sync.RWMutex
	told bool // no call is sent any more
}

// Depart stores, of each update that this worker hosts, which calls it has sent. It sends none afterwards. It is called
// once, when the worker takes no more tasks, and tries for lastLeave at most. Without it, as after a kill, every lost
// step may have had its effect.
func Depart(ctx context.Context, a *Activities) {
	a.departure.mu.Lock()
	a.departure.told = true
	a.departure.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lastLeave)
	defer cancel()
	a.mu.Lock()
	hosted := slices.Collect(maps.Values(a.sessions))
	a.mu.Unlock()
	var telling sync.WaitGroup
	for _, s := range hosted {
		telling.Go(func() { s.depart(ctx, a.Worker) })
	}
	telling.Wait()
}

func (s *session) depart(ctx context.Context, worker string) {
	if _, err := s.await(ctx); err != nil {
		return
	}
	begun := map[int]int{}
	note := func(op any, round int) { begun[op.(int)] = max(begun[op.(int)], round) }
	s.sent.Range(func(op, at any) bool { note(op, at.(*attempt).round); return true }) // first: they become spent
	s.spent.Range(func(op, round any) bool { note(op, round.(int)); return true })
	_ = persist(ctx, mayPass, func() error { // without it, the steps count as lost
		if there, err := s.store.IsStack(ctx, s.update.StackName, s.stackID); err != nil || !there {
			return err
		}
		return s.store.PutDeparture(ctx, s.update, worker, begun)
	})
}

// send notes that an attempt sends its call, unless the worker has told already what it had begun, or an earlier
// attempt is under way: the server counts that as ended, but its call still runs here.
func (at *attempt) send() error {
	d := at.session.departure
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.told {
		return postponed("the worker stops", 0)
	}
	if _, underWay := at.session.sent.LoadOrStore(at.step.Op, at); underWay {
		return unknownOutcome("an earlier attempt is still under way")
	}
	return nil
}

// neverSent reports whether the worker that was given the attempt has ended and left word that it did not send its
// call.
func (at *attempt) neverSent(ctx context.Context) (bool, error) {
	if at.former == "" {
		return false, nil
	}
	begun, told, err := at.session.store.Departure(ctx, at.session.update, at.former)
	return told && begun[at.step.Op] < at.round, err
}
