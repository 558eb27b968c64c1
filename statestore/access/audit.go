package access

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// The audit log has a folder for each organization, in it a folder for each day, and in that an object for each batch
// of entries. Entries that concern no organization are in a folder whose name no organization can have. An object is
// written once and never changed.
const (
	// AuditFolder has the audit log, in a folder for each organization.
	AuditFolder = "audit/"
	nobodys     = "_service"
	dayForm     = "2006-01-02"
	batchForm   = "150405.000000000"
)

const (
	// auditPause is how long entries are collected for one batch, if nobody waits for them.
	auditPause = time.Second
	// maxPending limits the entries in memory, in bytes, that are not written yet. Of more, refused calls are counted,
	// and others wait.
	maxPending = 8 << 20
	// maxBatch is how large an object gets, before it is sealed; whoever reads the log has some in memory.
	maxBatch = 1 << 20
	// That many folders are written at a time, and that many with refused calls.
	writingFolders, writingRefused = 16, 4
	// foldersFor is how long it is believed that an organization has no folder.
	foldersFor = time.Minute
)

// AuditLog writes the audit log. It may be used concurrently.
//
// What was accepted about each organization is a queue of its own, and waits for that of no other one. Refused calls
// are all in one more: they name any organization, and only one that something was accepted about has a folder for
// them.
type AuditLog struct {
	// Failed, if not nil, is called with how many entries could not be written; set it before the first entry.
	Failed func(entries int)

	store   *Store
	log     *slog.Logger
	room    *semaphore.Weighted // bytes of what is pending
	writing *semaphore.Weighted

	mu       sync.Mutex
	accepted map[string]*auditQueue // by folder; those with something to write
	refused  auditQueue
	refusals *refusals

	// folders are those that there are, as of listed; they are of the goroutine that writes refused calls.
	folders map[string]bool
	listed  time.Time
}

// auditQueue is what is pending, and who waits for it.
type auditQueue struct {
	pending []deployments.AuditEntry
	waiting []chan error
	busy    bool // a goroutine writes, until nothing is pending
	timed   bool // a timer will start one
}

// OpenAudit returns the audit log; log gets entries that could not be written.
func (s *Store) OpenAudit(log *slog.Logger) *AuditLog {
	return &AuditLog{store: s, log: log, refusals: newRefusals(), accepted: map[string]*auditQueue{},
		room: semaphore.NewWeighted(maxPending), writing: semaphore.NewWeighted(writingFolders)}
}

// Record adds an entry. With now it returns when the entry is durable; otherwise the entry is written within about a
// second. An entry waits for its turn when there are too many, unless it is of a refused call, which then is counted.
func (a *AuditLog) Record(ctx context.Context, e deployments.AuditEntry, now bool) error {
	e.Cut()
	if !e.Refused {
		if err := a.room.Acquire(ctx, e.Size()); err != nil {
			return err
		}
	}
	a.mu.Lock()
	folder := folderOf(e)
	if !a.refusals.admit(&e, func() bool { return a.room.TryAcquire(e.Size()) }) {
		a.mu.Unlock()
		return nil
	}
	q := a.queue(folder, e.Refused)
	q.pending = append(q.pending, e)
	if !now {
		if !q.timed && !q.busy {
			q.timed = true
			time.AfterFunc(auditPause, func() { a.flush(context.WithoutCancel(ctx), folder, q) })
		}
		a.mu.Unlock()
		return nil
	}
	written := make(chan error, 1)
	q.waiting = append(q.waiting, written)
	if !q.busy {
		q.busy = true
		go a.write(context.WithoutCancel(ctx), folder, q)
	}
	a.mu.Unlock()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// queue returns the queue of an entry.
func (a *AuditLog) queue(folder string, refused bool) *auditQueue {
	if refused {
		return &a.refused
	}
	q, ok := a.accepted[folder]
	if !ok {
		q = &auditQueue{}
		a.accepted[folder] = q
	}
	return q
}

// Flush writes the pending entries and returns when they are durable.
func (a *AuditLog) Flush(ctx context.Context) error {
	a.mu.Lock()
	var all []chan error
	wait := func(folder string, q *auditQueue) {
		if len(q.pending) > 0 || q.busy {
			written := make(chan error, 1)
			q.waiting, all = append(q.waiting, written), append(all, written)
			go a.flush(context.WithoutCancel(ctx), folder, q)
		}
	}
	wait("", &a.refused)
	for folder, q := range a.accepted {
		wait(folder, q)
	}
	a.mu.Unlock()
	var failures []error
	for _, written := range all {
		select {
		case err := <-written:
			failures = append(failures, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.Join(failures...)
}

func (a *AuditLog) flush(ctx context.Context, folder string, q *auditQueue) {
	a.mu.Lock()
	q.timed = false
	busy := q.busy
	q.busy = true
	a.mu.Unlock()
	if !busy {
		a.write(ctx, folder, q)
	}
}

// write writes batches of a queue until nothing is pending; entries that arrive during a write are the next batch.
func (a *AuditLog) write(ctx context.Context, folder string, q *auditQueue) {
	for {
		a.mu.Lock()
		entries, waiting := q.pending, q.waiting
		q.pending, q.waiting = nil, nil
		if len(entries) == 0 && len(waiting) == 0 {
			if q.busy = false; !q.timed && a.accepted[folder] == q {
				delete(a.accepted, folder)
			}
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		var err error
		if q == &a.refused {
			err = a.putRefused(ctx, entries)
		} else {
			_ = a.writing.Acquire(ctx, 1) // ctx does not end
			err = a.store.putAudit(ctx, folder, entries)
			a.writing.Release(1)
		}
		if err != nil {
			a.log.Error("audit entries were not written", "entries", len(entries), "error", err)
			if a.Failed != nil {
				a.Failed(len(entries))
			}
		}
		for _, e := range entries {
			if err != nil {
				a.log.Error("audit entry was not written", "entry", e)
			}
			a.room.Release(e.Size())
		}
		for _, written := range waiting {
			written <- err
		}
	}
}

// putRefused writes refused calls to the folders of the organizations that they name, if there are such.
func (a *AuditLog) putRefused(ctx context.Context, entries []deployments.AuditEntry) error {
	byFolder := map[string][]deployments.AuditEntry{}
	for _, e := range entries {
		folder := folderOf(e)
		if !a.exists(ctx, folder) {
			folder = nobodys
		}
		byFolder[folder] = append(byFolder[folder], e)
	}
	var mu sync.Mutex
	var failures []error
	writing, _ := panics.NewGroup(ctx, "writing the audit log")
	writing.SetLimit(writingRefused)
	for folder, entries := range byFolder {
		writing.Go(func() error {
			err := a.store.putAudit(ctx, folder, entries)
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, err)
			return nil
		})
	}
	return errors.Join(append(failures, writing.Wait())...)
}

// exists reports whether the log has a folder.
func (a *AuditLog) exists(ctx context.Context, folder string) bool {
	if !a.folders[folder] && a.store.sealed.Now().Sub(a.listed) >= foldersFor {
		l, err := a.store.sealed.Objects.List(ctx, bucket.Query{Prefix: AuditFolder, Fold: true})
		if err != nil {
			return false // what belongs to no organization is not lost either
		}
		a.folders, a.listed = map[string]bool{}, a.store.sealed.Now()
		for _, key := range l.Keys {
			a.folders[strings.TrimSuffix(strings.TrimPrefix(key, AuditFolder), "/")] = true
		}
	}
	return a.folders[folder]
}

// folderOf returns the folder of an entry.
func folderOf(e deployments.AuditEntry) string {
	if deployments.ValidateName("organization", e.Organization) != nil {
		return nobodys
	}
	return e.Organization
}

// putAudit writes entries to a folder, in objects of a bounded size.
func (s *Store) putAudit(ctx context.Context, folder string, entries []deployments.AuditEntry) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	first := 0
	for i, e := range entries {
		if err := encoder.Encode(e); err != nil {
			return deployments.Errorf(deployments.CodeInternal, "write the audit log: %w", err)
		}
		if lines.Len() < maxBatch && i < len(entries)-1 {
			continue
		}
		if err := s.putAuditBatch(ctx, folder, entries[first].Time, lines.Bytes()); err != nil {
			return err
		}
		lines.Reset()
		first = i + 1
	}
	return nil
}

func (s *Store) putAuditBatch(ctx context.Context, folder string, first time.Time, lines []byte) error {
	first = first.UTC()
	key := bucket.Key("audit", folder, first.Format(dayForm), first.Format(batchForm)+"-"+rand.Text()[:10])
	box := s.sealed.Keys.Box(seal.PurposeStore)
	_, err := s.sealed.Objects.Put(ctx, key, box.Seal(lines, key), bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		return nil // an attempt whose answer was lost has written it
	}
	return bucket.Failed(err, "write the audit log")
}
