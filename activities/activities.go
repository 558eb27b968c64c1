// Package activities carries out everything of an update that has an effect or takes time: hosting its program and
// plugins, planning, steps, settling lost steps, and saving.
//
// Every activity may run more than once for the same input. Activities that read may do so at any time; activities that
// write to the store write the same objects; a Step whose call may have had an effect fails with ErrorUnknownOutcome
// instead of repeating it (see Step).
package activities

import (
	"context"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/bundlecache"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore"
)

// Options are what activities need from their worker.
type Options struct {
	Store *statestore.Store
	Runs  runlink.Runs
	Heart Heart
	// Worker is the private task queue of this worker process.
	Worker string
	// Organizations are the only organizations whose updates this worker hosts; empty: all that have no workers of their
	// own.
	Organizations []string
	// Dir is where this worker keeps the files of the programs that it runs; it is made with mode 0700.
	Dir string
	// Sandbox isolates the processes of updates; nil: they are not isolated.
	Sandbox *sandbox.Policy
	// Env is the service's own environment; programs receive its inheritedVariables.
	Env []string
	// Plugins are the servers from which plugins that are not installed may be downloaded; nil: none.
	Plugins *plugins.Network
	// Included are the packages whose plugin is this binary; see pluginhost.Options.
	Included map[string][]string
	// CountSettled, if not nil, counts what settling a create came to: by which kind of rule, and with which result.
	CountSettled func(pkg, rule, result string)
	// Catalogue makes the catalogue of a session, with the settle rules that ship with deployctl; nil: there are none.
	// Sessions share none, because a catalogue keeps what the plugins of its session say.
	Catalogue func() settlerule.Catalogue
	Housekeeping
	// Unseen, if not nil, returns the first version from next on that no ended update has in Temporal: a store that was
	// restored from a backup would assign such versions a second time.
	Unseen func(ctx context.Context, name deployments.StackName, next int) (int, error)
	// Ended, if not nil, tells webhooks that an update has ended, and whether a schedule had asked for it. It returns once
	// that is certain, and may be called again for the same update.
	Ended func(ctx context.Context, info deployments.UpdateInfo, scheduled bool) error
}

// messageMemory is what large messages of plugins and programs take of a worker's memory at a time.
const messageMemory = 512 << 20

// Activities are the activities of one worker. Its exported methods are the activities; register it as a whole.
type Activities struct {
	Options
	bundles   *bundlecache.Cache
	reserve   *process.Spares // started between two updates for the next one
	accounts  *ratelimit.Accounts
	compared  *comparisons
	leases    *mempool.Pool // of the ends of leases
	settling  *mempool.Pool // of the updates that settle what leases left
	messages  *mempool.Pool // of what plugins and programs send
	mu        sync.Mutex
	sessions  map[string]*session    // by update
	spent     map[updateOf]*sync.Map // until the update's workflow is closed; see session.spent
	answers   *answers               // those of an update until its workflow is closed
	departure departure
	collected map[deployments.StackName]time.Time // when the worker last collected garbage of a stack
	groupTime time.Duration
	// leasePlacePatience is that of this name, except in tests.
	leasePlacePatience time.Duration
}

// New returns the activities of a worker.
func New(o Options) *Activities {
	return &Activities{
		Options: o, bundles: bundlecache.New(o.Dir), reserve: process.NewReserve(o.Sandbox),
		accounts: ratelimit.NewAccounts(), compared: newComparisons(), leases: mempool.New(leaseMemory),
		settling: mempool.New(settledMemory), messages: mempool.New(messageMemory),
		sessions: map[string]*session{}, spent: map[updateOf]*sync.Map{},
		answers: newAnswers(), collected: map[deployments.StackName]time.Time{}, groupTime: groupTime,
		leasePlacePatience: leasePlacePatience,
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
	a.reserve.Close()
}

// Taken returns how much memory the activities have given to what clients have made large, in bytes.
func Taken(a *Activities) int64 { return a.leases.Taken() + a.settling.Taken() }

// Ping returns at once; its success shows that the worker is alive.
func (a *Activities) Ping(context.Context) error { return nil }

// Release ends the update's session on this worker, with its plugins. Which steps were answered is remembered: only the
// end of the update's workflow makes that of no use.
func (a *Activities) Release(ctx context.Context, in deployments.ReleaseInput) error {
	a.forget(ctx, in.Update)
	return nil
}
