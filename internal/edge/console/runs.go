package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/sys/share"
)

const (
	// mostRuns is how many updates are kept at a time, those that are followed among them, and mostKept how many bytes of
	// them, about; grownBy is by how much one has grown when that is looked at again.
	mostRuns, mostKept = 64, 48 << 20
	grownBy            = 1 << 20
	// unreadFor is how long an update is followed that nobody looks at.
	unreadFor = time.Minute
	// firstPatience is how long a reader waits for the whole log of an update that runs.
	firstPatience = 2 * time.Second
)

// errGaveWay is the error of those who wait for a log that is not read on, because their organization reads too many.
var errGaveWay = deployments.Errorf(deployments.CodeUnavailable, "too many logs of updates of this organization are "+
	"being read at the moment, or too large ones: try again when fewer of its updates are looked at")

// runs keeps what the logs of some updates say, and follows those that run: a log is read once for all readers, and not
// again for each look.
type runs struct {
	ctx   context.Context // ends with the service
	watch func(context.Context, deployments.UpdateName, func(deployments.WatchEvent) error) error

	mu  sync.Mutex
	all []*run // the one that was read last is last
}

func newRuns(
	ctx context.Context, watch func(context.Context, deployments.UpdateName, func(deployments.WatchEvent) error) error,
) *runs {
	return &runs{ctx: ctx, watch: watch}
}

// run is what the log of an update says.
type run struct {
	update  deployments.UpdateName
	started time.Time // a later stack of the name may have an update of the same number
	stop    context.CancelCauseFunc
	done    chan struct{} // closed when nothing follows
	ready   chan struct{} // closed when the log that was there is read
	once    sync.Once

	mu      sync.Mutex
	told    told
	counted int       // bytes of it when those of all were counted last
	waiting int       // readers who wait for it
	read    time.Time // when somebody looked last
	gone    bool      // what follows it was told to stop
	err     error     // why it ended, if not with the end of the update
	// depends are what each resource of the update depends on, once somebody has looked for that; see critical.
	depends map[string][]string
}

// of returns what the log of an update says so far. The log of one that has ended is whole.
func (r *runs) of(ctx context.Context, info deployments.UpdateInfo) (*run, error) {
	found := r.find(info)
	defer r.leave(found)
	patience := time.NewTimer(firstPatience)
	defer patience.Stop()
	var late <-chan time.Time
	if info.Ended.IsZero() {
		late = patience.C
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-found.ready:
	case <-found.done:
	case <-late:
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	return found, found.err
}

// find returns the run of an update, for a reader who waits for it until leave, and begins to follow it if nothing
// does.
func (r *runs) find(info deployments.UpdateInfo) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	at := slices.IndexFunc(r.all, func(k *run) bool {
		return k.update == info.Update && k.started.Equal(info.Started) && k.join(now)
	})
	if at >= 0 {
		found := r.all[at]
		r.all = append(slices.Delete(r.all, at, at+1), found)
		return found
	}
	ctx, stop := context.WithCancelCause(r.ctx)
	begun := &run{update: info.Update, started: info.Started, stop: stop, done: make(chan struct{}),
		ready: make(chan struct{}), waiting: 1, read: now, told: newTold()}
	r.all = append(r.all, begun)
	r.evict()
	go r.follow(ctx, begun)
	return begun
}

// leave says that a reader waits no longer.
func (r *runs) leave(k *run) {
	k.mu.Lock()
	k.waiting--
	k.read = time.Now()
	k.mu.Unlock()
	r.bound()
}

// join has a reader wait for a run, if what is kept of it is right: it is followed, or its end is known.
func (k *run) join(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.usable() {
		return false
	}
	k.waiting++
	k.read = now
	return true
}

func (k *run) usable() bool { return !k.gone && k.err == nil }

// evict forgets some when there are too many or they are too large, of the organization that has the most: whoever may
// look at an update belongs to its organization. What runs and is forgotten is read again when somebody looks again.
// The caller holds the lock.
func (r *runs) evict() {
	r.all = slices.DeleteFunc(r.all, func(k *run) bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return !k.usable()
	})
	for {
		kept := make([]share.Kept, len(r.all))
		for i, k := range r.all {
			kept[i] = k.kept()
		}
		i := share.Bounds{Number: mostRuns, Size: mostKept}.Excess(kept)
		if i < 0 {
			return
		}
		r.all[i].stop(errGaveWay)
		r.all = slices.Delete(r.all, i, i+1)
	}
}

func (k *run) kept() share.Kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return share.Kept{Party: k.update.Organization, Size: k.told.size, Awaited: k.waiting > 0}
}

// bound evicts some, if there are too many or they are too large.
func (r *runs) bound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evict()
}

// apply takes in one item of the log, and reports whether the run has grown by much.
func (k *run) apply(e deployments.WatchEvent) (grown bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told.apply(e)
	if grown = k.told.size-k.counted > grownBy; grown {
		k.counted = k.told.size
	}
	return grown
}

// follow takes in the log of an update until its end, until nobody looks, or until the service ends.
func (r *runs) follow(ctx context.Context, k *run) {
	defer close(k.done)
	defer k.stop(nil)
	tick := time.NewTicker(unreadFor)
	defer tick.Stop()
	watched := make(chan struct{})
	go func() {
		for {
			select {
			case <-watched:
				return
			case now := <-tick.C:
				k.stopUnread(now)
			}
		}
	}()
	err := panics.Do("following an update", func() error {
		return r.watch(ctx, k.update, func(e deployments.WatchEvent) error {
			if k.apply(e) {
				r.bound()
			}
			if e.Progress != nil && e.Progress.Phase == nil { // is told once what is logged was sent
				k.once.Do(func() { close(k.ready) })
			}
			return nil
		})
	})
	close(watched)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err = err; ctx.Err() != nil && (err != nil || !k.told.ended) {
		k.err = context.Cause(ctx)
	}
}

// stopUnread ends the following of an update that nobody has looked at for long, and for which nobody waits.
func (k *run) stopUnread(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting == 0 && now.Sub(k.read) > unreadFor {
		k.gone = true
		k.stop(nil)
	}
}
