package access

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/deployctl/deployctl/deployments"
)

const (
	// That many refused calls a second of a token at an organization get their own entries, and that many of all callers
	// without a token; the next entry of the organization counts the others.
	refusedPerSecond = 20
	// Of the tokens of one organization, or of one that is for all, that many do at all organizations together: each of
	// those is a folder to write.
	refusedOfParty = 100
	// maxRefusers limits the tokens and the organizations of which refused calls are remembered.
	maxRefusers = 10_000
)

// refusals counts refused calls, so that nobody fills the audit log with them or hides by them what else is refused.
type refusals struct {
	of *simplelru.LRU[refuser, *refusedIn]
	// uncounted are the calls without an entry that no entry has counted yet, by folder. Those of a folder that is
	// forgotten count as the service's own.
	uncounted *simplelru.LRU[string, int]
	forgotten int
}

// refuser is a token and the folder of the organization at which its calls are refused, or a party alone.
type refuser struct{ folder, token, party string }

// refusedIn counts refused calls in one second.
type refusedIn struct {
	second time.Time
	calls  int
}

func newRefusals() *refusals {
	r := &refusals{}
	r.of, _ = simplelru.NewLRU[refuser, *refusedIn](maxRefusers, nil) // fails for no size only
	r.uncounted, _ = simplelru.NewLRU(maxRefusers, func(_ string, calls int) { r.forgotten += calls })
	return r
}

// admit reports whether an entry is written. One that is tells how many of its organization were not before it. A
// refused call is counted also when there is no room for it.
func (r *refusals) admit(e *deployments.AuditEntry, room func() bool) bool {
	folder := folderOf(*e)
	calls, _ := r.uncounted.Peek(folder)
	if e.Refused && (r.tooMany(folder, e) || !room()) {
		r.uncounted.Add(folder, calls+1)
		return false
	}
	if e.Repeated = calls; calls > 0 {
		r.uncounted.Add(folder, 0) // what is removed would count as forgotten
	}
	if folder == nobodys {
		e.Repeated, r.forgotten = e.Repeated+r.forgotten, 0
	}
	return true
}

// tooMany counts a refused call, and reports whether it is beyond those that get an entry. A caller without a token may
// name any organization, so these are counted together.
func (r *refusals) tooMany(folder string, e *deployments.AuditEntry) bool {
	if e.Token == "" {
		return r.count(refuser{}, e.Time) > refusedPerSecond
	}
	return r.count(refuser{folder: folder, token: e.Token}, e.Time) > refusedPerSecond ||
		r.count(refuser{party: e.Party}, e.Time) > refusedOfParty
}

// count returns how many calls of a refuser were refused in the second of this one, with it.
func (r *refusals) count(key refuser, at time.Time) int {
	in, ok := r.of.Get(key)
	if !ok {
		in = &refusedIn{}
		r.of.Add(key, in)
	}
	if second := at.Truncate(time.Second); !second.Equal(in.second) {
		*in = refusedIn{second: second}
	}
	in.calls++
	return in.calls
}
