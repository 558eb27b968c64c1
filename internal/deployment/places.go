package deployment

import "sync"

// preparations is how many deployments a worker prepares at a time: each may take the memory of its largest file twice.
// One organization gets at most preparationShare of them.
const preparations, preparationShare = 4, 3

// places are those of preparations.
type places struct {
	mu    sync.Mutex
	all   int
	taken map[string]int // by organization
}

// take takes a place for an organization, which leave gives back. There may be none.
func (p *places) take(organization string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == preparations || p.taken[organization] == preparationShare {
		return nil, false
	}
	p.all++
	p.taken[organization]++
	return func() { p.leave(organization) }, true
}

func (p *places) leave(organization string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.taken[organization]--; p.taken[organization] == 0 {
		delete(p.taken, organization)
	}
}
