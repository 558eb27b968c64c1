package grpcapi

import (
	"net/netip"
	"slices"
	"sync"
)

// places hold connections, up to a number. When there are more, the party that has the most gives way with its oldest
// one: a flood takes from itself. They are safe for concurrent use.
type places struct {
	size int

	mu    sync.Mutex
	taken []place // the oldest first
	of    map[string]int
}

type place struct {
	connection *connection
	party      string
}

func newPlaces(size int) *places { return &places{size: size, of: map[string]int{}} }

// enter gives a connection a place, and returns the one that has lost its place by that, or nil.
func (p *places) enter(c *connection, party string) (gone *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = append(p.taken, place{c, party})
	p.of[party]++
	if len(p.taken) <= p.size {
		return nil
	}
	last := 0
	for i, one := range p.taken {
		if p.of[one.party] > p.of[p.taken[last].party] {
			last = i
		}
	}
	return p.remove(last)
}

// leave gives back the place of a connection, if it has one.
func (p *places) leave(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(p.taken, func(one place) bool { return one.connection == c }); i >= 0 {
		p.remove(i)
	}
}

func (p *places) remove(i int) *connection {
	one := p.taken[i]
	p.taken = slices.Delete(p.taken, i, i+1)
	if p.of[one.party]--; p.of[one.party] == 0 {
		delete(p.of, one.party)
	}
	return one.connection
}

// Party is whose an address is: of IPv6 the network, whose addresses are one party's.
func Party(address string) string {
	host := Host(address)
	at, err := netip.ParseAddr(host)
	if err != nil || !at.Is6() || at.Is4In6() {
		return host
	}
	network, _ := at.WithZone("").Prefix(64) // never fails
	return network.String()
}
