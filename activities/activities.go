// Package activities carries out everything of an update that has an effect or takes time: hosting its program and
// plugins, planning, steps, settling lost steps, and saving.
//
// Every activity may run more than once for the same input. Activities that read may do so at any time; activities that
// write to the store write the same objects; a Step whose call may have had an effect fails with ErrorUnknownOutcome
// instead of repeating it (see Step).
//
// An activity of a running update asks for the session of the update on this worker (internal/host/session), and fails
// with ErrorNotStarted if another worker hosts it. Its other errors have the codes of deployments as their types, and
// Temporal repeats it as long as they may pass; see internal/host/failure.
package activities

import (
	"context"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/host/session"
	"github.com/deployctl/deployctl/internal/sys/mempool"
)

// Options are what activities need from their worker.
type Options struct {
	// Options are those of the sessions; New sets StateMemory.
	session.Options
	Runs  runlink.Runs
	Heart heartbeat.Heart
	Housekeeping
	// Unseen, if not nil, returns the first version from next on that no ended update has in Temporal: a store that was
	// restored from a backup would assign such versions a second time.
	Unseen func(ctx context.Context, name deployments.StackName, next int) (int, error)
	// Ended, if not nil, tells webhooks that an update has ended, and whether a schedule had asked for it. It returns once
	// that is certain, and may be called again for the same update.
	Ended func(ctx context.Context, info deployments.UpdateInfo, scheduled bool) error
}

// Activities are the activities of one worker. Its exported methods are the activities; register it as a whole.
type Activities struct {
	Options
	sessions  *session.Sessions
	leases    *mempool.Pool // of the ends of leases
	mu        sync.Mutex
	collected map[deployments.StackName]time.Time // when the worker last collected garbage of a stack
	groupTime time.Duration
	// leasePlacePatience is that of this name, except in tests.
	leasePlacePatience time.Duration
}

// New returns the activities of a worker.
func New(o Options) *Activities {
	o.StateMemory = mempool.New(settledMemory)
	return &Activities{
		Options: o, leases: mempool.New(leaseMemory), collected: map[deployments.StackName]time.Time{},
		groupTime: groupTime, leasePlacePatience: leasePlacePatience,
		sessions: session.New(o.Options),
	}
}

// Close ends every plugin and program that the activities have started, when the worker stops.
func Close(ctx context.Context, a *Activities) { a.sessions.Close(ctx) }

// lastWord is how long a worker that ends tries to store which calls it has sent.
const lastWord = 20 * time.Second

// Depart has a worker that takes no more tasks send no call any more, and store which ones it has sent of the updates
// that it hosts.
func Depart(ctx context.Context, a *Activities) {
	ctx, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	a.sessions.Depart(ctx)
}

// Taken returns how much memory the activities have given to what clients have made large, in bytes.
func Taken(a *Activities) int64 { return a.leases.Taken() + a.StateMemory.Taken() }

// Reported tells the activities whether Temporal has accepted the end of one of them, by its task token.
func Reported(a *Activities, token []byte, err error) { a.sessions.Reported(token, err) }

// Hosted returns the updates of which this worker has, or has had, a session. It has kept answers of some that it has
// forgotten: a step may end after that.
func Hosted(a *Activities) []deployments.UpdateName { return a.sessions.Updates() }

// HostedSince returns since when this worker has a session of each update that it hosts.
func HostedSince(a *Activities) []time.Time { return a.sessions.HostedSince() }

// Forget ends the session of an update whose workflow is closed, and forgets which of its steps were answered.
func Forget(ctx context.Context, a *Activities, u deployments.UpdateName) {
	a.sessions.Forget(ctx, u)
}

// PingWorker returns at once; its success shows that the worker is alive.
func (a *Activities) PingWorker(context.Context) error { return nil }

// EndSession ends the update's session on this worker, with its plugins. Which steps were answered is remembered: only
// the end of the update's workflow makes that of no use.
func (a *Activities) EndSession(ctx context.Context, in deployments.ReleaseInput) error {
	a.sessions.End(ctx, in.Update)
	return nil
}
