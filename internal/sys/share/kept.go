package share

// Kept is something that is kept for a party because it saves others work, such as an entry of a cache.
type Kept struct {
	Party string
	Size  int
	// Awaited says that somebody waits for it at the moment.
	Awaited bool
}

// Bounds are how many things are kept for all parties, and how large these are together.
type Bounds struct{ Number, Size int }

// Excess returns the index of what gives way to others, of a list in which what was used longest ago is first; -1:
// nothing has to. The party that has the most loses one of its own, so that a flood takes from itself. The only one of
// a party is spared while another party has several, and for as long as somebody waits for it; so each party that waits
// has one beyond the bounds at most.
func (b Bounds) Excess(kept []Kept) int {
	parts, size := map[string]*part{}, 0
	for i, k := range kept {
		p := parts[k.Party]
		if p == nil {
			p = &part{idle: -1}
			parts[k.Party] = p
		}
		p.add(i, k)
		size += k.Size
	}
	tooMany := len(kept) > b.Number
	if len(kept) <= 1 || !tooMany && size <= b.Size {
		return -1
	}
	var most *part
	for _, k := range kept { // in their order, so that of equal parts that which was used longest ago gives way
		if p := parts[k.Party]; most == nil || p.exceeds(most, tooMany) {
			most = p
		}
	}
	return most.givesWay()
}

// part is what is kept for one party.
type part struct {
	number, size int
	// idle is the one that was used longest ago of those for which nobody waits, -1 if there is none; last is the one
	// that was used last.
	idle, last int
}

func (p *part) add(i int, k Kept) {
	p.number++
	p.size += k.Size
	p.last = i
	if p.idle < 0 && !k.Awaited {
		p.idle = i
	}
}

// exceeds reports whether a part gives way rather than another one: by the number of its things, or by their size.
func (p *part) exceeds(other *part, byNumber bool) bool {
	switch {
	case (p.number > 1) != (other.number > 1):
		return p.number > 1
	case p.number == 1 && (p.idle < 0) != (other.idle < 0):
		return p.idle >= 0
	case byNumber:
		return p.number > other.number
	}
	return p.size > other.size
}

// givesWay returns the one that a party loses. If somebody waits for each, it is the latest: those that were begun
// before end sooner.
func (p *part) givesWay() int {
	if p.idle >= 0 || p.number == 1 {
		return p.idle
	}
	return p.last
}
