package pulumiapi

import (
	"context"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/journal"
)

// unhurriedPause is how long the answer to journal entries is held that the client does not wait for: half as long as
// the CLI gathers entries where no variable says otherwise. Its next entries come as one batch after that, so that an
// update without a change makes a tenth of the calls. Entries that the client waits for come at most this much later.
const unhurriedPause = 25 * time.Millisecond

// mostFollowed is how many journals are followed at a time. Whatever is forgotten is answered at once.
const mostFollowed = 1000

// unhurried finds the entries of journals that their clients do not wait for.
type unhurried struct {
	mu     sync.Mutex
	leases map[string]*journal.Unchanged // by the id of the update
}

// waits reports whether the client of an update waits for the answer to its next journal entries.
func (u *unhurried) waits(id string, entries []journal.Entry) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.leases == nil || len(u.leases) >= mostFollowed && u.leases[id] == nil {
		u.leases = map[string]*journal.Unchanged{}
	}
	if u.leases[id] == nil {
		u.leases[id] = &journal.Unchanged{}
	}
	return !u.leases[id].Ends(entries)
}

// forget forgets an update that has ended.
func (u *unhurried) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.leases, id)
}

// pause returns after a duration, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
