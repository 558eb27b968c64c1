package console

import "slices"

// shareOf is what is kept of the updates of one organization: whoever may look at one of them belongs to it.
type shareOf struct {
	runs, bytes int
	idle        *run // the one that was read longest ago of those for which nobody waits; nil: there is none
	last        *run // the one that was read last
}

// evict forgets some when there are too many or they are too large; the caller holds the lock. What runs and is
// forgotten is read again when somebody looks again.
func (r *runs) evict() {
	r.all = slices.DeleteFunc(r.all, func(k *run) bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return !k.usable()
	})
	for {
		k := r.excess()
		if k == nil {
			return
		}
		r.all = slices.DeleteFunc(r.all, func(other *run) bool { return other == k })
		k.stop(errGaveWay)
	}
}

// excess returns the run that gives way to others; nil: none has to. The organization that has the most loses one of
// its own, so that a flood takes from itself. The only one of an organization is spared while another one has several,
// and for as long as somebody waits for it; so each that waits has one beyond the bounds at most.
func (r *runs) excess() *run {
	shares, size := map[string]*shareOf{}, 0
	for _, k := range r.all {
		s := shares[k.update.Organization]
		if s == nil {
			s = &shareOf{}
			shares[k.update.Organization] = s
		}
		size += s.add(k)
	}
	tooMany := len(r.all) > mostRuns
	if len(r.all) == 1 || !tooMany && size <= mostKept {
		return nil
	}
	var most *shareOf
	for _, k := range r.all { // in their order, so that of equal shares that which was read longest ago gives way
		if s := shares[k.update.Organization]; most == nil || s.exceeds(most, tooMany) {
			most = s
		}
	}
	return most.givesWay()
}

// add counts a run, the one that was read longest ago first, and returns its size.
func (s *shareOf) add(k *run) (size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.runs++
	s.bytes += k.told.size
	s.last = k
	if s.idle == nil && k.waiting == 0 {
		s.idle = k
	}
	return k.told.size
}

// exceeds reports whether a share gives way rather than another one: by the number of its runs, or by their bytes.
func (s *shareOf) exceeds(other *shareOf, byNumber bool) bool {
	switch {
	case (s.runs > 1) != (other.runs > 1):
		return s.runs > 1
	case s.runs == 1 && (s.idle != nil) != (other.idle != nil):
		return s.idle != nil
	case byNumber:
		return s.runs > other.runs
	}
	return s.bytes > other.bytes
}

// givesWay returns the run that a share loses, if any. If somebody waits for each, it is the latest: those that were
// begun before end sooner.
func (s *shareOf) givesWay() *run {
	switch {
	case s.idle != nil:
		return s.idle
	case s.runs > 1:
		return s.last
	}
	return nil
}
