// Package activities carries out everything of an update that has an effect or takes time: hosting its program and
// plugins, planning, the steps, finding out what lost steps came to, and saving.
//
// Every activity may run more than once for the same input. Those that read may do so at any time; those that write to
// the store write the same objects; a Step that may have changed the world says so instead of trying again (see Step).
package activities

import (
	"context"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/bundlecache"
	"github.com/deployctl/deployctl/internal/pluginhost/process"
	"github.com/deployctl/deployctl/internal/ratelimit"
	"github.com/deployctl/deployctl/internal/runlink"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/statestore"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// Options are what a worker's activities need of it.
type Options struct {
	Store *statestore.Store
	Runs  runlink.Runs
	Heart Heart
	// Worker is the private task queue of this worker process.
	Worker string
	// Organizations are those that this worker hosts updates of, and no others; empty: all that have no workers of
	// their own.
	Organizations []string
	// Dir is where this worker keeps the files of the programs that it runs; it is made with mode 0700.
	Dir string
	// Sandbox keeps what is run for updates apart; nil: nothing does.
	Sandbox *sandbox.Policy
	// Env is the service's own environment, of which programs get what they cannot run without.
	Env []string
	// Builtin are the packages that are served in this process, by name; each call makes one provider for an update in
	// that environment.
	Builtin map[string]func(process.Environment) pulumirpc.ResourceProviderServer
	Housekeeping
	// Unseen, if not nil, gives the first version from next on that no ended update has outside of the store: a store
	// that was put back from a backup gives out versions again.
	Unseen func(ctx context.Context, name deployments.StackName, next int) (int, error)
}

// Activities are the activities of one worker. Its exported methods are the activities; register it as a whole.
type Activities struct {
	Options
	bundles   *bundlecache.Cache
	accounts  *ratelimit.Accounts
	mu        sync.Mutex
	sessions  map[string]*session                 // by update
	collected map[deployments.StackName]time.Time // when, last
}

// New makes the activities of a worker.
func New(o Options) *Activities {
	return &Activities{
		Options: o, bundles: bundlecache.New(o.Dir), accounts: ratelimit.NewAccounts(), sessions: map[string]*session{},
		collected: map[deployments.StackName]time.Time{},
	}
}

// Close ends every plugin and program that the activities have started, when the worker stops.
func Close(ctx context.Context, a *Activities) {
	a.mu.Lock()
	sessions := a.sessions
	a.sessions = map[string]*session{}
	a.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range sessions {
		closing.Go(func() { s.end(ctx) })
	}
	closing.Wait()
}

// Ping tells that the worker is alive.
func (a *Activities) Ping(context.Context) error { return nil }

// Release ends the update's plugins on this worker and forgets what is kept of it here.
func (a *Activities) Release(ctx context.Context, in deployments.ReleaseInput) error {
	a.forget(ctx, in.Update)
	return nil
}
