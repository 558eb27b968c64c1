package session

import (
	"context"
	"math"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/plan"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

// answerer answers the program of an epoch ahead of its Run, by an engine.Replica, for as long as that decides.
type answerer struct {
	session *Session
	link    *runlink.Link
	replica *engine.Replica

	mu      sync.Mutex
	offered []engine.Event // not handled yet
	wake    chan struct{}  // holds a token while there may be some

	planned chan engine.Planned
	slots   chan struct{} // held by each plan that is being made
	plans   sync.WaitGroup
}

// answerAhead answers the program ahead until stop is called. Only the first epoch of an update is answered ahead:
// in a later one the Run has gone on from the base.
func (e *epoch) answerAhead(ctx context.Context) (stop func()) {
	if e.number > 1 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &answerer{
		session: e.session, link: e.link, wake: make(chan struct{}, 1),
		planned: make(chan engine.Planned), slots: make(chan struct{}, plan.Parallel),
	}
	e.link.AnswerAhead(a.offer)
	var answering sync.WaitGroup
	answering.Go(func() {
		defer a.plans.Wait() // their provider is closed after stop
		defer cancel()
		defer e.link.GoOn()
		// Whatever the error is, the Run meets it as well, and reports it.
		_ = panics.Do("answering the program of "+e.session.update.String(), func() (err error) {
			if a.replica, err = e.replica(ctx); err == nil && a.replica != nil {
				a.answer(ctx)
			}
			return err
		})
	})
	return func() {
		cancel()
		answering.Wait()
	}
}

// replica returns a replica of the Run; nil if there is nothing that it could decide.
func (e *epoch) replica(ctx context.Context) (*engine.Replica, error) {
	if e.session.base == 0 {
		return engine.NewReplica(e.goal, nil, nil), nil
	}
	base, err := e.headers(ctx, deployments.HeadersInput{
		Update: e.session.update, Base: e.session.base, Limit: math.MaxInt,
	})
	if err != nil {
		return nil, err
	}
	goal := e.goal
	goal.Defaults = base.Defaults
	return engine.NewReplica(goal, base.States, base.Pending), nil
}

// offer takes a message of the program for the replica.
func (a *answerer) offer(m deployments.Message) {
	var ev engine.Event // nil ends the replica
	switch {
	case m.Registered != nil:
		ev = *m.Registered
	case m.OutputsRegistered != nil:
		ev = *m.OutputsRegistered
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.offered = append(a.offered, ev)
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// answer handles what is offered until the replica ends.
func (a *answerer) answer(ctx context.Context) {
	for goesOn := true; goesOn; {
		select {
		case <-a.wake:
			a.mu.Lock()
			events := a.offered
			a.offered = nil
			a.mu.Unlock()
			for i := 0; i < len(events) && goesOn; i++ {
				goesOn = a.handle(ctx, events[i])
			}
		case p := <-a.planned:
			goesOn = a.handle(ctx, p)
		case <-ctx.Done():
			return
		}
	}
}

// handle passes an event to the replica; it reports whether the replica goes on.
func (a *answerer) handle(ctx context.Context, ev engine.Event) bool {
	decided, goesOn := a.replica.Handle(ev)
	for _, answer := range decided.Answers {
		a.link.Answer(answer.Reply, answer.Ahead)
	}
	if !goesOn {
		return false
	}
	for _, p := range decided.Plans {
		a.plans.Go(func() { a.plan(ctx, p) })
	}
	return true
}

// plan makes a plan for the replica. One that fails as a whole ends the replica: the Run repeats it.
func (a *answerer) plan(ctx context.Context, p engine.Plan) {
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	planned, err := a.session.plans.One(ctx, p)
	<-a.slots
	if err != nil {
		planned = engine.Planned{Op: p.Op, Error: err.Error()}
	}
	select {
	case a.planned <- planned:
	case <-ctx.Done():
	}
}
