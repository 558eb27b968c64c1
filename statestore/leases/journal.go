package leases

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/journal"
	"github.com/deployctl/deployctl/statestore/updates"
)

const (
	// journalMemory limits the objects of a journal that are in memory while it is replayed.
	journalMemory = 32 << 20
	// journalAhead objects are read at a time, the one that is needed and others that have no more than aheadMemory.
	journalAhead = 8
	aheadMemory  = 16 << 20
)

// ReplayTimes is how many copies there are of what a journal adds to a state, until that is written.
const ReplayTimes = 2

// parse returns the entries of an array, each of which could become part of the state of a stack.
func (s *Store) parse(name deployments.StackName, array []byte) iter.Seq2[journal.Entry, error] {
	return journal.Parse(array, s.of.Checks(name))
}

// journalEntry is where an entry of a journal is.
type journalEntry struct {
	sequence int64
	object   int32
	index    int32 // in the array of the object
}

// Journal is what a client has written to the journal of an update. It reads that in the order of its sequence numbers,
// in bounded memory: it first finds where each entry is, and then reads the objects again that it could not keep. A
// client writes its entries nearly in order, so few are read more than twice.
type Journal struct {
	// Last is the number of the last object before the end; 0 when the client has written none.
	Last int
	// Room is how much memory was taken for the state that becomes of it, in bytes.
	Room int
	// Bytes is how much of the journal is in memory, which does not exceed Memory.
	Bytes, Memory int

	store   *Store
	update  deployments.UpdateName
	objects map[int][][]byte // the entries of the objects in memory, by number
	kept    []int            // of objects, in the order in which they were read
	misses  int              // objects that were asked for and not in memory
}

// End writes the end of an update's journal, unless it has one, and returns what is before it.
func (s *Store) End(ctx context.Context, u deployments.UpdateName) (*Journal, error) {
	r := &Journal{store: s, update: u, objects: map[int][][]byte{}, Memory: journalMemory}
	var line updates.LogLine
	for !line.End {
		part, release := mempool.Part(ctx) // what it reads is not kept
		last, there, err := s.lastOfLog(part, journalLog, u, r.Last)
		if release(); err != nil {
			return nil, err
		}
		if r.Last, line = last, there; line.End {
			r.Last--
			break
		}
		line.End = true
		err = s.putLog(ctx, journalLog, u, last+1, line, nil)
		if line.End = err == nil; err != nil && !errors.Is(err, bucket.ErrChanged) { // more was written meanwhile
			return nil, err
		}
	}
	r.Room = int(min(line.Bytes, deployments.MaxClientState))
	// All is taken at once: ends that all have a part of what they need would wait for each other.
	return r, mempool.Take(ctx, min(line.Bytes, 2*journalMemory+aheadMemory)+ReplayTimes*int64(r.Room))
}

// EndJournal has nothing more written to the journal of a lease whose client has said that it is done. The end says how
// many objects there are, as far as this process knows, which has written them, or the bucket: what is deleted between,
// or was before, is noticed when the lease ends. It does nothing when the update has lost the stack.
func (s *Store) EndJournal(ctx context.Context, l deployments.Leased) error {
	lease := writtenLease{l.Update, l.Fence}
	if err := s.holdsLease(ctx, lease); err != nil {
		if deployments.CodeOf(err) == deployments.CodeForbidden {
			return nil
		}
		return err
	}
	known, size := s.logs.last(logOfLease{journalLog, lease})
	if known > 0 { // mostly nobody else has written to it
		err := s.putLog(ctx, journalLog, l.Update, known+1, updates.LogLine{LogSize: size, End: true}, nil)
		if !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
	for {
		last, line, err := s.lastOfLog(ctx, journalLog, l.Update, known)
		if err != nil || line.End {
			return err
		}
		if last < known { // the last ones were deleted
			last, line.LogSize = known, size
		}
		line.End = true
		if err := s.putLog(ctx, journalLog, l.Update, last+1, line, nil); !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
}

// Forget drops what is in memory, when only the state is needed.
func (r *Journal) Forget() { r.objects = nil }

// Entries returns the entries in the order of their sequence numbers, each once. An error, which is CodeInvalid if it
// is the client's fault, is the last thing that it returns.
func (r *Journal) Entries(ctx context.Context) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		places, err := r.places(ctx)
		if err != nil {
			yield(journal.Entry{}, err)
			return
		}
		r.misses = 0
		for _, p := range places {
			if err := r.load(ctx, int(p.object)); err != nil {
				yield(journal.Entry{}, err)
				return
			}
			entry := r.objects[int(p.object)][p.index]
			for e, err := range r.store.parse(r.update.StackName, slices.Concat([]byte("["), entry, []byte("]"))) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// places returns where the entries are, in the order of their sequence numbers, and of repeated ones the first.
func (r *Journal) places(ctx context.Context) (places []journalEntry, err error) {
	for object := 1; object <= r.Last; object++ {
		if err := r.load(ctx, object); err != nil {
			return nil, err
		}
		for index, raw := range r.objects[object] {
			var e struct {
				Sequence int64 `json:"sequenceID"`
			}
			if err := rawjson.Unmarshal(raw, &e); err != nil {
				return nil, deployments.Errorf(deployments.CodeInvalid, "a journal entry cannot be read: %w", err)
			}
			//nolint:gosec // see MaxJournalEntries
			places = append(places, journalEntry{e.Sequence, int32(object), int32(index)})
		}
	}
	slices.SortStableFunc(places, func(a, b journalEntry) int { return cmp.Compare(a.sequence, b.sequence) })
	return slices.CompactFunc(places, func(a, b journalEntry) bool { return a.sequence == b.sequence }), nil
}

// load has an object in memory, and reads the next ones with it.
func (r *Journal) load(ctx context.Context, object int) error {
	if _, ok := r.objects[object]; ok {
		return nil
	}
	if r.misses++; r.misses > 2*r.Last {
		return deployments.Errorf(deployments.CodeInvalid, "the entries of the journal were written in no order, so that it "+
			"cannot be replayed")
	}
	var missing []int
	for n := object; n <= r.Last && len(missing) < journalAhead; n++ {
		if _, ok := r.objects[n]; !ok {
			missing = append(missing, n)
		}
	}
	arrays, errs := make([][]byte, len(missing)), make([]error, len(missing))
	var reading sync.WaitGroup
	pool := mempool.New(aheadMemory)
	for i, n := range missing {
		ctx := mempool.Without(ctx) // see End
		if n != object {
			ahead := pool.Claim("", nil)
			defer ahead.Release()
			ctx = mempool.With(ctx, ahead, 0)
		}
		reading.Go(func() {
			if _, arrays[i], errs[i] = r.store.getLog(ctx, journalLog, r.update, n); errors.Is(errs[i], bucket.ErrAbsent) {
				errs[i] = lostEntries(r.update, n)
			}
		})
	}
	reading.Wait()
	for i, n := range slices.Backward(missing) { // so that the one that was asked for stays
		switch {
		case n != object && errors.Is(errs[i], mempool.ErrBusy): // it is read when it is needed
		case errs[i] != nil:
			return errs[i]
		default:
			r.keep(n, slices.Collect(rawjson.Elements(arrays[i])))
		}
	}
	return nil
}

// lostEntries is the error about an object of a journal that is missing before its end: what it had would be forgotten.
func lostEntries(u deployments.UpdateName, n int) error {
	return deployments.Errorf(deployments.CodeFormat, "%s is missing, though the client of update %s has written it: put "+
		"back the last good copy of this object (an earlier version of the bucket's, or of its backup), or give up what the "+
		"update did with `deployctl stack recover --discard`", journalLog.key(u, n), u)
}

// keep keeps the entries of an object, and forgets those that were read first.
func (r *Journal) keep(object int, entries [][]byte) {
	r.objects[object], r.kept, r.Bytes = entries, append(r.kept, object), r.Bytes+sizeOf(entries)
	for r.Bytes > r.Memory && len(r.kept) > 1 {
		r.Bytes -= sizeOf(r.objects[r.kept[0]])
		delete(r.objects, r.kept[0])
		r.kept = r.kept[1:]
	}
}

func sizeOf(entries [][]byte) (bytes int) {
	for _, entry := range entries {
		bytes += len(entry)
	}
	return bytes
}
