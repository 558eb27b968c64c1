// Package share divides a number of places among parties, such as the organizations of a service, so that what one
// party holds for long leaves room for all others. Nobody waits here for a place: who gets none is refused, or comes
// back. It also says which entry of a cache gives way, so that a party fills its own part. Memory is divided by package
// mempool, which has those wait who want more.
package share

import "sync"

// Limits are numbers of places.
type Limits struct {
	// All are the places of all parties; OfOne those that one party has at most.
	All, OfOne int
	// Least are the places that a party may have whatever others hold, beyond All.
	Least int
}

// Places are places that parties take and leave. They are safe for concurrent use.
type Places struct {
	limits Limits

	mu    sync.Mutex
	all   int
	taken map[string]int // by party, without those that have none
}

// NewPlaces returns places of which none is taken.
func NewPlaces(l Limits) *Places { return &Places{limits: l, taken: map[string]int{}} }

// Take takes a place for a party, unless there is none for it. Leave gives it back; more calls of it do nothing.
func (p *Places) Take(party string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if has := p.taken[party]; has >= p.limits.OfOne || p.all >= p.limits.All && has >= p.limits.Least {
		return func() {}, false
	}
	p.all++
	p.taken[party]++
	return sync.OnceFunc(func() { p.leave(party) }), true
}

func (p *Places) leave(party string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.taken[party]--; p.taken[party] == 0 {
		delete(p.taken, party)
	}
}

// Held returns how many places are taken.
func (p *Places) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}
