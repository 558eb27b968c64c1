package mempool

import "sync"

// keptShare is the part of the size of a pool that a party may Keep.
const keptShare = 2

// Keep notes that n bytes are kept of what a party has sent, which nobody waits for and nothing takes back: beside the
// pool, each party may have half its size of such memory. It reports whether that is so with these; then whoever keeps
// them calls forget once they are gone.
func (p *Pool) Keep(party string, n int64) (forget func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept[party]+n > p.size/keptShare {
		return nil, false
	}
	p.kept[party] += n
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.kept[party] -= n; p.kept[party] == 0 {
			delete(p.kept, party)
		}
	}), true
}
