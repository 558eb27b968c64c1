package access

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// callerFor is how long a caller is cached. maxCallers and callerMemory limit the cache: what a caller takes decides
// whoever administers it.
const (
	callerFor    = 5 * time.Second
	maxCallers   = 4096
	callerMemory = 32 << 20
)

// knownCaller is a caller as last read.
type knownCaller struct {
	deployments.Caller
	within  string // the organization that the token is for, or AnyOrganization
	expires time.Time
	read    time.Time
}

// callers caches authenticated callers, by the hash of the token's text. What an organization does costs its own
// callers: a change makes it forget those, and if there are too many, it forgets those of the organization that has the
// most.
type callers struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]knownCaller
	bytes map[string]int64 // of the callers of each organization
	total int64
	// changed is the number of changes of tokens, members and what else decides what callers may do. changedIn is what it
	// was after the last change in an organization, and changedAll after that of anything else.
	changed, changedAll int
	changedIn           map[string]int
}

func (c *callers) find(hash [sha256.Size]byte, now time.Time) (knownCaller, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.known[hash]
	return found, ok && now.Sub(found.read) < callerFor
}

// changes returns the number of changes.
func (c *callers) changes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// keep caches a caller that was read after so many changes, unless there were more since in their organization: the
// caller may be gone.
func (c *callers) keep(hash [sha256.Size]byte, k knownCaller, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if max(c.changedAll, c.changedIn[k.within]) > changes {
		return
	}
	size := k.Size()
	c.remove(hash)
	for len(c.known) > 0 && (len(c.known) >= maxCallers || c.total+size > callerMemory) {
		most := ""
		for within, bytes := range c.bytes {
			if most == "" || bytes > c.bytes[most] {
				most = within
			}
		}
		c.removeAll(most)
	}
	if c.known == nil {
		c.known, c.bytes = map[[sha256.Size]byte]knownCaller{}, map[string]int64{}
	}
	c.known[hash] = k
	c.bytes[k.within] += size
	c.total += size
}

// removeAll removes the callers of an organization.
func (c *callers) removeAll(within string) {
	for hash, k := range c.known {
		if k.within == within {
			c.remove(hash)
		}
	}
}

func (c *callers) remove(hash [sha256.Size]byte) {
	k, ok := c.known[hash]
	if !ok {
		return
	}
	delete(c.known, hash)
	c.total -= k.Size()
	if c.bytes[k.within] -= k.Size(); c.bytes[k.within] <= 0 {
		delete(c.bytes, k.within)
	}
}

// forget forgets the callers of an organization, of which something has changed that decides what they may do; those of
// all if it is AnyOrganization.
func (c *callers) forget(organization string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed++
	if organization == deployments.AnyOrganization || len(c.changedIn) >= maxCallers {
		c.changedAll, c.changedIn = c.changed, nil
	}
	if organization == deployments.AnyOrganization {
		c.known, c.bytes, c.total = nil, nil, 0
		return
	}
	if c.changedIn == nil {
		c.changedIn = map[string]int{}
	}
	c.changedIn[organization] = c.changed
	c.removeAll(organization)
}
