package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// Housekeeping says what a worker removes from the store.
type Housekeeping struct {
	// Retention is what it leaves of a stack; nil: all.
	Retention *statestore.Retention
	// Collected, if not nil, is told of every time that it looked. It may be called concurrently.
	Collected func(deployments.StackName, statestore.Collected, error)
}

const (
	// collectEvery is how often a worker looks at a stack, at most: what it collects is many days old.
	collectEvery = time.Hour
	// collecting bounds the time that one look may take; the next goes on.
	collecting = 10 * time.Minute
)

// tidy keeps the bundle that a stack's update used, since it may be used again without being sent, and removes what the
// update before left and what is not kept of the stack. It is no part of the update after which it is done: nobody
// waits for it, and what is not done now is done after a later one.
func (a *Activities) tidy(ctx context.Context, in deployments.CommitInput, request deployments.UpdateRequest) {
	ctx, cancel := context.WithTimeout(ctx, collecting)
	defer cancel()
	stack := in.Update.StackName
	if changesHead(in.Update, request) && in.Base > 0 {
		a.Store.Sweep(ctx, stack, in.Base)
	}
	if a.Retention == nil {
		return
	}
	if request.Bundle != "" {
		_ = a.Store.KeepBundle(ctx, stack, request.Bundle) // it is kept for a month at least
	}
	if !a.due(stack, time.Now()) {
		return
	}
	collected, err := a.Store.Collect(ctx, stack, *a.Retention)
	if a.Collected != nil {
		a.Collected(stack, collected, err)
	}
}

// due tells whether a stack is to be looked at, and remembers that it was.
func (a *Activities) due(stack deployments.StackName, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.collected[stack]) < collectEvery {
		return false
	}
	a.collected[stack] = now
	return true
}
