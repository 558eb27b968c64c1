package statestore

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

const (
	// headKnownFor is how long a head is kept to be changed without another read. It is the time between a look at the
	// head and the change that follows it; an older one would mostly have changed.
	headKnownFor = 5 * time.Second
	// claimKnownFor is headKnownFor of the end of a claim: while an update has its stack, hardly anybody else changes the
	// head.
	claimKnownFor = 365 * 24 * time.Hour
	// maxHeads and maxHeadBytes limit the heads that are kept, and the size of one.
	maxHeads, maxHeadBytes = 512, 64 << 10
)

// recentHeads are heads that were just read or written, as they are stored: what changes a head has mostly just looked
// at it. The change is conditional on the tag, so one that is outdated, for whatever reason, is found out and does no
// harm. Nothing is answered by them. It is safe for concurrent use.
type recentHeads struct {
	known *lru.Cache[deployments.StackName, recentHead]
	// current are the nonces of heads that were found to be as new as what their stacks have.
	current *lru.Cache[deployments.StackName, currentHead]
	now     func() time.Time
}

type recentHead struct {
	bucket.Object
	at time.Time
}

type currentHead struct {
	nonce string
	at    time.Time
}

func newRecentHeads(now func() time.Time) (recentHeads, error) {
	known, err := lru.New[deployments.StackName, recentHead](maxHeads)
	if err != nil {
		return recentHeads{}, err
	}
	current, err := lru.New[deployments.StackName, currentHead](maxHeads)
	return recentHeads{known, current, now}, err
}

func (r recentHeads) keep(name deployments.StackName, o bucket.Object) {
	if len(o.Data) > maxHeadBytes {
		r.drop(name)
		return
	}
	r.known.Add(name, recentHead{o, r.now()})
}

func (r recentHeads) drop(name deployments.StackName) { r.known.Remove(name) }

// get returns a head that was read or written within a time.
func (r recentHeads) get(name deployments.StackName, within time.Duration) (bucket.Object, bool) {
	head, ok := r.known.Get(name)
	if age := r.now().Sub(head.at); !ok || age < 0 || age > within {
		return bucket.Object{}, false
	}
	return head.Object, true
}

// noteCurrent notes that a head is as new as what its stack has: each write of a head has a nonce of its own.
func (r recentHeads) noteCurrent(name deployments.StackName, h Head) {
	r.current.Add(name, currentHead{h.Nonce, r.now()})
}

// isCurrent reports whether noteCurrent was called for the same head a moment ago.
func (r recentHeads) isCurrent(name deployments.StackName, h Head) bool {
	noted, ok := r.current.Get(name)
	age := r.now().Sub(noted.at)
	return ok && h.Nonce != "" && noted.nonce == h.Nonce && age >= 0 && age <= headKnownFor
}
