package statestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// journalWriters is how many objects of one update's journal are written at a time. Entries that arrive meanwhile wait
// for each other and become one object: a client with many steps in flight sends an entry for each.
const journalWriters = 2

// journalPatience bounds the write of an object, so that one that hangs does not stop the journal.
const journalPatience = time.Minute

// journals are the journal entries that wait to be written, by lease.
type journals struct {
	mu     sync.Mutex
	queues map[journalLease]*journalQueue
}

// journalLease is what entries that are written together have in common.
type journalLease struct {
	update deployments.UpdateName
	fence  int
}

type journalQueue struct {
	writers int
	next    *journalBatch // nil when nothing waits
}

// journalBatch is journal entries that become one object.
type journalBatch struct {
	first   int64
	entries [][]byte      // JSON of each
	stored  chan struct{} // closed when err is set
	err     error
}

// WriteJournal implements deployments.LeasedState.
func (s *Store) WriteJournal(ctx context.Context, l deployments.Leased, first int64, entries json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(entries, &list); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "the journal entries are no JSON array: %w", err)
	}
	batch, begin := s.journals.add(journalLease{l.Update, l.Fence}, first, list)
	if begin {
		go s.writeJournals(context.WithoutCancel(ctx), l)
	}
	select {
	case <-batch.stored:
		return batch.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// add adds entries to the next batch of a lease, and reports whether a writer has to begin.
func (j *journals) add(lease journalLease, first int64, entries []json.RawMessage) (b *journalBatch, begin bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.queues[lease]
	if q == nil {
		q = &journalQueue{}
		j.queues[lease] = q
	}
	if q.next == nil {
		q.next = &journalBatch{first: first, stored: make(chan struct{})}
		if begin = q.writers < journalWriters; begin {
			q.writers++
		}
	}
	q.next.first = min(q.next.first, first)
	for _, e := range entries {
		q.next.entries = append(q.next.entries, e)
	}
	return q.next, begin
}

// take takes the next batch of a lease. When there is none, the writer is done.
func (j *journals) take(lease journalLease) *journalBatch {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.queues[lease]
	b := q.next
	q.next = nil
	if b == nil {
		if q.writers--; q.writers == 0 {
			delete(j.queues, lease)
		}
	}
	return b
}

// writeJournals writes the batches of a lease until none waits.
func (s *Store) writeJournals(ctx context.Context, l deployments.Leased) {
	for {
		b := s.journals.take(journalLease{l.Update, l.Fence})
		if b == nil {
			return
		}
		b.err = s.writeJournal(ctx, l, b)
		close(b.stored)
	}
}

// writeJournal stores a batch. Its key is its own: what is sent again may arrive in another batch.
func (s *Store) writeJournal(ctx context.Context, l deployments.Leased, b *journalBatch) error {
	ctx, cancel := context.WithTimeout(ctx, journalPatience)
	defer cancel()
	entries := slices.Concat([]byte("["), bytes.Join(b.entries, []byte(",")), []byte("]"))
	key := updateKey(l.Update, journalFolder, fmt.Sprintf("%012d-%s", b.first, rand.Text()[:8]))
	if err := s.put(ctx, l.Update.StackName, key, entries); err != nil {
		return err
	}
	return s.holdsLease(ctx, l)
}
