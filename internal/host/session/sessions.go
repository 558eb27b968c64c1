// Package session has the sessions of a worker: what it keeps of each update that it hosts, from its first claim to the
// end of its workflow. A session has the files of the program, its language host and plugins, its log and its secrets,
// and runs the program. Package plan plans in it, and package step makes its steps.
package session

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/deployctl/deployctl/internal/host/bundlecache"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/host/step"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore"
)

// Options are what the sessions of a worker need.
type Options struct {
	Store *statestore.Store
	// Worker is the private task queue of this worker process.
	Worker string
	// Organizations are the only organizations whose updates this worker hosts; empty: all that have no workers of their
	// own.
	Organizations []string
	// Dir is where this worker keeps the files of the programs that it runs; it is made with mode 0700.
	Dir string
	// Sandbox isolates the processes of updates; nil: they are not isolated.
	Sandbox *sandbox.Policy
	// Env is the service's own environment; programs receive its inherited variables.
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
	// StateMemory is the memory for the states of the updates that settle what leases left.
	StateMemory *mempool.Pool
	// MostHosted is how many updates of one organization this worker hosts at a time; 0: mostHosted.
	MostHosted int
}

// messageMemory is what large messages of plugins and programs take of a worker's memory at a time.
const messageMemory = 512 << 20

// Sessions are those of the updates that a worker hosts.
type Sessions struct {
	Options
	bundles  *bundlecache.Cache
	reserve  *process.Spares // started between two updates for the next one
	accounts *ratelimit.Accounts
	compared *compare.Cache
	messages *mempool.Pool // of what plugins and programs send
	answers  *step.Answers // those of an update until its workflow is closed
	mu       sync.Mutex
	all      map[string]*Session // by update
}

// New returns the sessions of a worker, of which there are none yet.
func New(o Options) *Sessions {
	return &Sessions{
		Options: o, bundles: bundlecache.New(o.Dir), reserve: process.NewReserve(o.Sandbox),
		accounts: ratelimit.NewAccounts(), compared: compare.NewCache(),
		messages: mempool.New(messageMemory), answers: step.NewAnswers(), all: map[string]*Session{},
	}
}

// Close ends every plugin and program of the sessions, when the worker stops.
func (a *Sessions) Close(ctx context.Context) {
	a.mu.Lock()
	all := a.all
	a.all = map[string]*Session{}
	a.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range all {
		closing.Go(func() { s.end(ctx) })
	}
	closing.Wait()
	a.reserve.Close()
}

// Depart stores, of each update that the worker hosts, which calls it has sent. It sends none afterwards. It is called
// once, when the worker takes no more tasks.
func (a *Sessions) Depart(ctx context.Context) {
	a.answers.Depart()
	a.mu.Lock()
	all := slices.Collect(maps.Values(a.all))
	a.mu.Unlock()
	var telling sync.WaitGroup
	for _, s := range all {
		telling.Go(func() {
			if _, err := s.Await(ctx); err == nil {
				s.steps.Depart(ctx, a.Worker)
			}
		})
	}
	telling.Wait()
}

// Reported tells the worker whether Temporal has accepted the end of an activity, by its task token.
func (a *Sessions) Reported(token []byte, err error) { a.answers.Reported(token, err) }
