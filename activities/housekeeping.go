package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore"
)

// Housekeeping configures what a worker removes from the store.
type Housekeeping struct {
	// Retention is what the worker keeps of a stack; nil: everything.
	Retention *statestore.Retention
	// Collected, if not nil, is called after every collection. It may be called concurrently.
	Collected func(deployments.StackName, statestore.Collected, error)
}

const (
	// collectEvery is the minimum interval between two collections of a stack on one worker; garbage is days old, so there
	// is no hurry.
	collectEvery = time.Hour
	// collecting bounds the time of one collection; the next one continues.
	collecting = 10 * time.Minute
)

// tidy marks the bundle of the update as used, so that a later update need not send it again. It removes the working
// objects of the update that made the base version, and collects garbage. It runs after the update has ended and
// ignores errors: a later update repeats what failed here.
func (a *Activities) tidy(ctx context.Context, in deployments.CommitInput, request deployments.UpdateRequest) {
	ctx, cancel := context.WithTimeout(ctx, collecting)
	defer cancel()
	ctx, release := mempool.Part(ctx) // what the update had is given back
	defer release()
	stack := in.Update.StackName
	if changesHead(in.Update, request) && in.Base > 0 {
		a.Store.Sweep(ctx, stack, in.Base)
	}
	if a.Retention == nil {
		return
	}
	if request.Bundle != "" {
		_ = a.Store.Programs.KeepBundle(ctx, stack, request.Bundle) // a bundle is kept for at least a month anyway
	}
	if !a.due(stack, time.Now()) {
		return
	}
	collected, err := a.Store.Collect(ctx, stack, *a.Retention)
	if err == nil {
		err = a.Store.Programs.PluginArchives(stack.Organization).Collect(ctx, a.Retention.Age)
	}
	if a.Collected != nil {
		a.Collected(stack, collected, err)
	}
}

// due reports whether garbage of a stack is to be collected now, and notes that it is.
func (a *Activities) due(stack deployments.StackName, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.collected[stack]) < collectEvery {
		return false
	}
	a.collected[stack] = now
	return true
}
