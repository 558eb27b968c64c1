package statestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/panics"
)

// journalPatience bounds the write of an object, so that one that hangs does not stop the journal.
const journalPatience = time.Minute

// A journal is a log: its objects are numbered from 1, and each is written only if there is none of that number. The
// end of a lease writes the last one, journalEnd. So what is written before is part of the journal, nothing can be
// written after it, and no answer to a client has to wait for a look at the head.
const journalEnd = "null"

// journals are the journal entries that wait to be written, by lease.
type journals struct {
	mu     sync.Mutex
	queues map[writtenLease]*journalQueue
}

// writtenLease is the lease of what is written, without what changes at a renewal.
type writtenLease struct {
	update deployments.UpdateName
	fence  int
}

type journalQueue struct {
	writing bool          // others wait for each other meanwhile, and then become one object
	next    *journalBatch // nil when nothing waits
	held    bool          // the update had the stack when it was first written here
	last    int           // the number of the last object, as far as is known here; the writer's
}

// idleJournals is how many queues are kept for what they know of the last object.
const idleJournals = 1000

// journalBatch is journal entries that become one object.
type journalBatch struct {
	entries [][]byte      // arrays of them, as JSON
	stored  chan struct{} // closed when err is set
	err     error
}

// WriteJournal implements deployments.LeasedState. It returns when the entries are stored, even if the client has gone,
// so that what a call may hold in memory is held by a call.
func (s *Store) WriteJournal(ctx context.Context, l deployments.Leased, entries json.RawMessage) error {
	lease := writtenLease{l.Update, l.Fence}
	batch, begin := s.journals.add(lease, entries)
	if begin {
		go s.writeJournals(context.WithoutCancel(ctx), lease)
	}
	<-batch.stored
	return batch.err
}

// add adds entries to the next batch of a lease, and reports whether a writer has to begin.
func (j *journals) add(lease writtenLease, entries json.RawMessage) (b *journalBatch, begin bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.queues[lease]
	if q == nil {
		if len(j.queues) >= idleJournals {
			maps.DeleteFunc(j.queues, func(_ writtenLease, q *journalQueue) bool { return !q.writing })
		}
		q = &journalQueue{}
		j.queues[lease] = q
	}
	if q.next == nil {
		q.next = &journalBatch{stored: make(chan struct{})}
		begin, q.writing = !q.writing, true
	}
	q.next.entries = append(q.next.entries, entries)
	return q.next, begin
}

// take takes the next batch of a lease; nil when there is none, and the writer is done.
func (j *journals) take(lease writtenLease) (*journalQueue, *journalBatch) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.queues[lease]
	b := q.next
	q.next, q.writing = nil, b != nil
	return q, b
}

// writeJournals writes the batches of a lease until none waits.
func (s *Store) writeJournals(ctx context.Context, lease writtenLease) {
	for {
		q, b := s.journals.take(lease)
		if b == nil {
			return
		}
		b.err = panics.Do("writing a journal", func() error { return s.appendJournal(ctx, lease, q, b) })
		close(b.stored)
	}
}

// appendJournal writes a batch as the next object of a journal, which fails once the journal has its end.
func (s *Store) appendJournal(ctx context.Context, lease writtenLease, q *journalQueue, b *journalBatch) error {
	ctx, cancel := context.WithTimeout(ctx, journalPatience)
	defer cancel()
	if !q.held { // a journal that was collected has no end any more
		if err := s.holdsLease(ctx, lease); err != nil {
			return err
		}
		q.held = true
	}
	u := lease.update
	entries := bytes.Join(b.entries, []byte("\n"))
	for {
		err := s.putJournal(ctx, u, q.last+1, entries)
		if err == nil {
			q.last++
		}
		if !errors.Is(err, ErrChanged) {
			return err
		}
		// Another server has written it, or an earlier attempt of this one, or it is the end.
		if err = s.findLast(ctx, u, q); err != nil {
			return err
		}
	}
}

func journalKey(u deployments.UpdateName, n int) string {
	return updateKey(u, journalFolder, fmt.Sprintf("%012d", n))
}

// putJournal writes the object of a number unless it exists: ErrChanged.
func (s *Store) putJournal(ctx context.Context, u deployments.UpdateName, n int, plain []byte) error {
	r, err := s.stackKeysOf(ctx, u.StackName)
	if err != nil {
		return err
	}
	key := journalKey(u, n)
	_, err = s.objects.Put(ctx, key, r.box.Seal(plain, sealContext(u.StackName, key)), Condition{Absent: true})
	if errors.Is(err, ErrChanged) {
		return err
	}
	return failed(err, "write "+key)
}

// findLast sets the number of the last object of a journal; CodeForbidden when that is its end.
func (s *Store) findLast(ctx context.Context, u deployments.UpdateName, q *journalQueue) error {
	prefix := updateKey(u, journalFolder, "")
	l, err := s.objects.List(ctx, Query{Prefix: prefix, After: journalKey(u, q.last)})
	if err != nil || len(l.Keys) == 0 {
		return failed(err, "list "+prefix)
	}
	last := l.Keys[len(l.Keys)-1]
	plain, err := s.get(ctx, u.StackName, last)
	if err != nil {
		return err
	}
	if string(plain) == journalEnd {
		return leaseOver(u)
	}
	q.last, err = strconv.Atoi(path.Base(last))
	return err
}
