package process

import "sync"

// startQueue has the starts of processes that wait, of parties such as organizations in turn: one that starts many
// holds up no other.
type startQueue struct {
	mu      sync.Mutex
	more    *sync.Cond
	waiting map[string][]func() // by party; none is empty
	turns   []string            // the parties that wait; the first one is next
}

func newStartQueue() *startQueue {
	q := &startQueue{waiting: map[string][]func(){}}
	q.more = sync.NewCond(&q.mu)
	return q
}

// add has a start wait for its turn.
func (q *startQueue) add(party string, start func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting[party]) == 0 {
		q.turns = append(q.turns, party)
	}
	q.waiting[party] = append(q.waiting[party], start)
	q.more.Signal()
}

// next returns the start whose turn it is, and waits until there is one.
func (q *startQueue) next() (start func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.turns) == 0 {
		q.more.Wait()
	}
	party := q.turns[0]
	q.turns = q.turns[1:]
	start = q.waiting[party][0]
	if rest := q.waiting[party][1:]; len(rest) > 0 {
		q.waiting[party] = rest
		q.turns = append(q.turns, party)
	} else {
		delete(q.waiting, party)
	}
	return start
}
