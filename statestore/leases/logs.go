package leases

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
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/journal"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/deployctl/deployctl/statestore/updates"
)

// The client of an update writes two logs: its journal and its events. The objects of a log are numbered from 1, and
// each is written only if there is none of that number. Each begins with a line that says how much the log has with it,
// so that all servers count the same, and a log has a limit (docs/adr/0044). The end of a lease writes the last object
// of its journal. So what is written before is part of it, nothing can be written after it, and no answer to a client
// has to wait for a look at the head.

// clientLog is a kind of log.
type clientLog struct {
	folder []string // below that of the update
	what   string
	most   updates.LogSize
	// ends: the log has an end, and a client writes to it only while its update has the stack.
	ends bool
}

// ClientStream is the stream of a client's events in an event log.
const ClientStream = "client"

var (
	journalLog = &clientLog{folder: []string{JournalFolder}, what: "journal entries", ends: true,
		most: updates.LogSize{Items: deployments.MaxJournalEntries, Bytes: deployments.MaxJournalBytes,
			References: deployments.MaxJournalReferences}}
	clientEvents = &clientLog{folder: []string{updates.EventsFolder, updates.ClientStream}, what: "events",
		most: updates.LogSize{Items: deployments.MaxClientEvents, Bytes: deployments.MaxClientEventBytes}}
)

const (
	// logPatience bounds the write of an object, so that one that hangs does not stop the log.
	logPatience = time.Minute
	// mergedBytes limits the writes that become one object because they wait for each other.
	mergedBytes = 1 << 20
	// idleLogs is how many queues are kept for what they know of the last object.
	idleLogs = 1000
)

// JournalKey returns the key of the object of a number of an update's journal.
func JournalKey(u deployments.UpdateName, n int) string { return journalLog.key(u, n) }

func (k *clientLog) key(u deployments.UpdateName, n int) string {
	return k.prefix(u) + fmt.Sprintf("%08d", n)
}

func (k *clientLog) prefix(u deployments.UpdateName) string {
	return stackobjects.UpdateKey(u, append(k.folder, "")...)
}

// clientLogs are the writes to logs that wait.
type clientLogs struct {
	mu     sync.Mutex
	queues map[logOfLease]*logQueue
}

type logOfLease struct {
	log   *clientLog
	lease writtenLease
}

// writtenLease is the lease of what is written, without what changes at a renewal.
type writtenLease struct {
	update deployments.UpdateName
	fence  int
}

type logQueue struct {
	writing bool // others wait for each other meanwhile
	waiting []*logWrite
	held    bool // the update had the stack when it was first written here
	last    int  // the number of the last object, as far as is known here, and
	size    updates.LogSize
}

// logWrite is what one call writes.
type logWrite struct {
	array      []byte // of items, as JSON
	items      int
	references int           // see updates.LogSize
	stored     chan struct{} // closed when err is set
	err        error
}

// WriteJournal implements deployments.LeasedState. It returns when the entries are stored, even if the client has gone,
// so that what a call may hold in memory is held by a call.
func (s *Store) WriteJournal(ctx context.Context, l deployments.Leased, entries json.RawMessage) error {
	largest, references := int64(0), 0
	if json.Valid(entries) {
		for raw := range rawjson.Elements(entries) {
			largest, references = max(largest, rawjson.Cost(raw)), references+journal.References(raw)
		}
	}
	if err := deployments.ValidateReferences(references); err != nil {
		return err
	}
	if err := mempool.Take(ctx, largest); err != nil { // they are parsed one after the other
		return err
	}
	items := 0
	for _, err := range s.parse(l.Update.StackName, entries) {
		if err == nil && items == deployments.MaxBatch {
			err = deployments.TooLarge("one call has more than %d journal entries: send fewer at once", items)
		}
		if err != nil {
			return err
		}
		items++
	}
	return s.writeLog(ctx, journalLog, l, &logWrite{array: entries, items: items, references: references})
}

// WriteClientEvents adds events of a client to the log of its update: a JSON array of so many deployments.WatchEvent.
func (s *Store) WriteClientEvents(ctx context.Context, l deployments.Leased, events []byte, items int) error {
	return s.writeLog(ctx, clientEvents, l, &logWrite{array: events, items: items})
}

func (s *Store) writeLog(ctx context.Context, k *clientLog, l deployments.Leased, w *logWrite) error {
	if w.items == 0 {
		return nil
	}
	of := logOfLease{k, writtenLease{l.Update, l.Fence}}
	w.array, w.stored = bytes.TrimSpace(w.array), make(chan struct{})
	if s.logs.add(of, w) {
		go s.writeLogs(context.WithoutCancel(ctx), of)
	}
	<-w.stored
	return w.err
}

// add has a write wait for its turn, and reports whether a writer has to begin.
func (c *clientLogs) add(of logOfLease, w *logWrite) (begin bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[of]
	if q == nil {
		if len(c.queues) >= idleLogs {
			maps.DeleteFunc(c.queues, func(_ logOfLease, q *logQueue) bool { return !q.writing })
		}
		q = &logQueue{}
		c.queues[of] = q
	}
	begin, q.writing = !q.writing, true
	q.waiting = append(q.waiting, w)
	return begin
}

// last returns the number of the last object of a log as far as it is known here, and how much the log has with it.
func (c *clientLogs) last(of logOfLease) (n int, size updates.LogSize) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.queues[of]; q != nil {
		return q.last, q.size
	}
	return 0, updates.LogSize{}
}

// wrote has a queue know the last object of its log, before those whose writes it has are told. Only its writer, which
// reads it without the mutex, calls this.
func (c *clientLogs) wrote(q *logQueue, last int, size updates.LogSize) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q.last, q.size = last, size
}

// take takes the writes that become the next object of a log: the first one, and of the next ones what is small. There
// are none when the writer is done.
func (c *clientLogs) take(of logOfLease) (*logQueue, []*logWrite) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[of]
	n, bytes, items := 0, 0, 0
	for _, w := range q.waiting {
		bytes, items = bytes+len(w.array), items+w.items
		if n > 0 && (bytes > mergedBytes || items > deployments.MaxBatch) {
			break
		}
		n++
	}
	taken := q.waiting[:n:n]
	q.waiting, q.writing = q.waiting[n:], n > 0
	return q, taken
}

// writeLogs writes what waits until nothing does.
func (s *Store) writeLogs(ctx context.Context, of logOfLease) {
	for {
		q, taken := s.logs.take(of)
		if len(taken) == 0 {
			return
		}
		err := panics.Do("writing what a client sends", func() error { return s.appendLog(ctx, of, q, taken) })
		for _, w := range taken {
			w.err = err
			close(w.stored)
		}
	}
}

// appendLog writes the next object of a log, which fails once the log has its end or too much.
func (s *Store) appendLog(ctx context.Context, of logOfLease, q *logQueue, taken []*logWrite) error {
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	if of.log.ends && !q.held { // a journal that was collected has no end any more
		if err := s.holdsLease(ctx, of.lease); err != nil {
			return err
		}
		q.held = true
	}
	array, items, references := joined(taken)
	for {
		size := updates.LogSize{Items: q.size.Items + items, Bytes: q.size.Bytes + int64(len(array)),
			References: q.size.References + references}
		if size.Over(of.log.most) {
			return of.log.full(of.lease.update)
		}
		err := s.putLog(ctx, of.log, of.lease.update, q.last+1, updates.LogLine{LogSize: size}, array)
		if err == nil {
			s.logs.wrote(q, q.last+1, size)
		}
		if !errors.Is(err, bucket.ErrChanged) {
			return err
		}
		// Another server has written it, or an earlier attempt of this one, or it is the end.
		last, line, err := s.lastOfLog(ctx, of.log, of.lease.update, q.last)
		if err != nil {
			return err
		}
		if line.End {
			return leaseOver(of.lease.update)
		}
		s.logs.wrote(q, last, line.LogSize)
	}
}

// full is the error about a log that takes no more.
func (k *clientLog) full(u deployments.UpdateName) error {
	references := ""
	if k.most.References > 0 {
		references = fmt.Sprintf(", with %d references of resources to others", k.most.References)
	}
	return deployments.TooLarge("update %s has written as many %s as one update may: %d, of %d MiB together%s; divide "+
		"the stack, or update some resources at a time (--target)", u, k.what, k.most.Items, k.most.Bytes>>20, references)
}

// joined returns the arrays of writes as one array.
func joined(writes []*logWrite) (array []byte, items, references int) {
	if len(writes) == 1 {
		return writes[0].array, writes[0].items, writes[0].references
	}
	array = append(array, '[')
	for _, w := range writes {
		if items > 0 {
			array = append(array, ',')
		}
		array = append(array, w.array[1:len(w.array)-1]...)
		items, references = items+w.items, references+w.references
	}
	return append(array, ']'), items, references
}

// putLog writes the object of a number unless it exists: ErrChanged.
func (s *Store) putLog(
	ctx context.Context, k *clientLog, u deployments.UpdateName, n int, line updates.LogLine, array []byte,
) error {
	stack, err := s.stacks.Of(ctx, u.StackName)
	if err != nil {
		return err
	}
	first, err := json.Marshal(line)
	if err != nil {
		return err
	}
	key := k.key(u, n)
	sealed := stack.Box.SealParts(stackobjects.Context(u.StackName, key), first, []byte("\n"), array)
	_, err = s.stacks.Sealed.Objects.Put(ctx, key, sealed, bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		return err
	}
	return bucket.Failed(err, "write "+key)
}

// getLog reads an object of a log.
func (s *Store) getLog(
	ctx context.Context, k *clientLog, u deployments.UpdateName, n int,
) (line updates.LogLine, array []byte, err error) {
	key := k.key(u, n)
	plain, _, err := s.stacks.Get(ctx, u.StackName, key)
	if err != nil {
		return line, nil, err
	}
	return updates.CutLine(key, plain)
}

// logPage is how many names of objects are listed at once.
const logPage = 1000

// lastOfLog returns the number of the last object of a log, after one that there is, and its first line; 0 when there
// is none.
func (s *Store) lastOfLog(
	ctx context.Context, k *clientLog, u deployments.UpdateName, after int,
) (last int, line updates.LogLine, err error) {
	q := bucket.Query{Prefix: k.prefix(u), Limit: logPage}
	if after > 0 {
		q.After = k.key(u, after-1)
	}
	for more := true; more; {
		l, err := s.stacks.Sealed.Objects.List(ctx, q)
		if err != nil {
			return 0, line, bucket.Failed(err, "list "+q.Prefix)
		}
		if more = l.More; len(l.Keys) > 0 {
			q.After = l.Keys[len(l.Keys)-1]
			if last, err = strconv.Atoi(path.Base(q.After)); err != nil {
				return 0, line, bucket.Damaged(q.After, err)
			}
		}
	}
	if last > 0 {
		line, _, err = s.getLog(ctx, k, u, last)
	}
	return last, line, err
}
