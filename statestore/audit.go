package statestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/seal"
)

// The audit log has a folder for each organization, in it a folder for each day, and in that an object for each batch
// of entries. Entries that concern no organization are in a folder whose name no organization can have. An object is
// written once and never changed.
const (
	auditFolder = "audit/"
	nobodys     = "_service"
	dayForm     = "2006-01-02"
	batchForm   = "150405.000000000"
)

const (
	// auditPause is how long entries are collected for one batch, if nobody waits for them.
	auditPause = time.Second
	// maxPending limits the entries in memory while the object store is unreachable; the process's log gets the rest.
	maxPending = 20_000
)

// AuditLog writes the audit log. It may be used concurrently.
type AuditLog struct {
	store *Store
	log   *slog.Logger

	mu       sync.Mutex
	pending  []deployments.AuditEntry
	waiting  []chan error // for the pending entries
	busy     bool         // a goroutine writes, until nothing is pending
	timed    bool         // a timer will start one
	refusals *refusals
}

// OpenAudit returns the audit log; log gets entries that could not be written.
func (s *Store) OpenAudit(log *slog.Logger) *AuditLog {
	return &AuditLog{store: s, log: log, refusals: newRefusals()}
}

// Record adds an entry. With now it returns when the entry is durable; otherwise the entry is written within about a
// second.
func (a *AuditLog) Record(ctx context.Context, e deployments.AuditEntry, now bool) error {
	a.mu.Lock()
	if !a.refusals.admit(&e) {
		a.mu.Unlock()
		return nil
	}
	if len(a.pending) >= maxPending {
		a.mu.Unlock()
		return deployments.Errorf(deployments.CodeUnavailable, "the audit log cannot be written, and %d entries wait "+
			"already", maxPending)
	}
	a.pending = append(a.pending, e)
	if !now {
		if !a.timed && !a.busy {
			a.timed = true
			time.AfterFunc(auditPause, func() { a.flush(context.WithoutCancel(ctx)) })
		}
		a.mu.Unlock()
		return nil
	}
	written := make(chan error, 1)
	a.waiting = append(a.waiting, written)
	if !a.busy {
		a.busy = true
		go a.write(context.WithoutCancel(ctx))
	}
	a.mu.Unlock()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isRefusal(e deployments.AuditEntry) bool {
	return e.Code == deployments.CodeUnauthorized || e.Code == deployments.CodeForbidden ||
		e.Code == deployments.CodeNotFound
}

// Flush writes the pending entries and returns when they are durable.
func (a *AuditLog) Flush(ctx context.Context) error {
	a.mu.Lock()
	if len(a.pending) == 0 && !a.busy {
		a.mu.Unlock()
		return nil
	}
	written := make(chan error, 1)
	a.waiting = append(a.waiting, written)
	a.mu.Unlock()
	go a.flush(context.WithoutCancel(ctx))
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *AuditLog) flush(ctx context.Context) {
	a.mu.Lock()
	a.timed = false
	busy := a.busy
	a.busy = true
	a.mu.Unlock()
	if !busy {
		a.write(ctx)
	}
}

// write writes batches until nothing is pending; entries that arrive during a write are the next batch.
func (a *AuditLog) write(ctx context.Context) {
	for {
		a.mu.Lock()
		entries, waiting := a.pending, a.waiting
		a.pending, a.waiting = nil, nil
		if len(entries) == 0 && len(waiting) == 0 {
			a.busy = false
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		err := a.store.putAudit(ctx, entries)
		if err != nil {
			a.log.Error("audit entries were not written", "entries", entries, "error", err)
		}
		for _, written := range waiting {
			written <- err
		}
	}
}

// putAudit writes one object for each organization.
func (s *Store) putAudit(ctx context.Context, entries []deployments.AuditEntry) error {
	byFolder := map[string][]deployments.AuditEntry{}
	for _, e := range entries {
		byFolder[folderOf(e)] = append(byFolder[folderOf(e)], e)
	}
	var failures []error
	for folder, entries := range byFolder {
		failures = append(failures, s.putAuditBatch(ctx, folder, entries))
	}
	return errors.Join(failures...)
}

// folderOf returns the folder of an entry.
func folderOf(e deployments.AuditEntry) string {
	if deployments.ValidateName("organization", e.Organization) != nil {
		return nobodys
	}
	return e.Organization
}

func (s *Store) putAuditBatch(ctx context.Context, folder string, entries []deployments.AuditEntry) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, e := range entries {
		if err := encoder.Encode(e); err != nil {
			return deployments.Errorf(deployments.CodeInternal, "write the audit log: %w", err)
		}
	}
	first := entries[0].Time.UTC()
	key := join("audit", folder, first.Format(dayForm), first.Format(batchForm)+"-"+rand.Text()[:10])
	_, err := s.objects.Put(ctx, key, s.keys.Box(seal.PurposeStore).Seal(lines.Bytes(), key), Condition{Absent: true})
	if errors.Is(err, ErrChanged) {
		return nil // an attempt whose answer was lost has written it
	}
	return failed(err, "write the audit log")
}

// Audit sends the entries that the query selects, oldest first. A damaged batch is reported in an entry of its own.
func (s *Store) Audit(ctx context.Context, q deployments.AuditQuery, fn func(deployments.AuditEntry) error) error {
	folders := []string{auditFolder + q.Organization + "/"}
	if q.Organization == deployments.AnyOrganization {
		l, err := s.objects.List(ctx, Query{Prefix: auditFolder, Fold: true})
		if err != nil {
			return failed(err, "list the audit log")
		}
		folders = l.Keys
	}
	byDay := map[string][]string{}
	for _, folder := range folders {
		// A batch is named by its first minute and may have entries of later ones.
		after := folder + q.Since.Add(-24*time.Hour).UTC().Format(dayForm)
		l, err := s.objects.List(ctx, Query{Prefix: folder, After: after})
		if err != nil {
			return failed(err, "list the audit log")
		}
		for _, key := range l.Keys {
			day, _, _ := strings.Cut(strings.TrimPrefix(key, folder), "/")
			byDay[day] = append(byDay[day], key)
		}
	}
	days := make([]string, 0, len(byDay))
	for day := range byDay {
		if q.Until.IsZero() || day <= q.Until.UTC().Format(dayForm) {
			days = append(days, day)
		}
	}
	slices.Sort(days)
	for _, day := range days {
		entries, err := s.auditOf(ctx, byDay[day])
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !q.Selects(e) {
				continue
			}
			if err := fn(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// auditOf returns the entries of some batches, oldest first.
func (s *Store) auditOf(ctx context.Context, keys []string) ([]deployments.AuditEntry, error) {
	var mu sync.Mutex
	var entries []deployments.AuditEntry
	err := each(keys, func(key string) error {
		batch, err := s.auditBatch(ctx, key)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		entries = append(entries, batch...)
		return nil
	})
	slices.SortStableFunc(entries, func(a, b deployments.AuditEntry) int { return a.Time.Compare(b.Time) })
	return entries, err
}

func (s *Store) auditBatch(ctx context.Context, key string) ([]deployments.AuditEntry, error) {
	o, err := s.objects.Get(ctx, key)
	if errors.Is(err, ErrAbsent) {
		return nil, nil // no longer kept
	}
	if err != nil {
		return nil, failed(err, "read the audit log")
	}
	plain, err := s.keys.Box(seal.PurposeStore).Open(o.Data, key)
	var entries []deployments.AuditEntry
	if err == nil {
		for decoder := json.NewDecoder(bytes.NewReader(plain)); decoder.More(); {
			var e deployments.AuditEntry
			if err = decoder.Decode(&e); err != nil {
				break
			}
			entries = append(entries, e)
		}
	}
	if err != nil {
		entries = append(entries, damagedBatch(key, err))
	}
	return entries, nil
}

// damagedBatch is the entry in place of those of a batch that cannot be read.
func damagedBatch(key string, err error) deployments.AuditEntry {
	folder, rest, _ := strings.Cut(strings.TrimPrefix(key, auditFolder), "/")
	at, _ := time.Parse(dayForm, rest[:min(len(rest), len(dayForm))])
	return deployments.AuditEntry{
		Time: at, Organization: strings.TrimPrefix(folder, nobodys), Method: "damaged",
		Code: deployments.CodeFormat, Error: key + ": " + err.Error(),
	}
}

// CollectAudit removes the days of the audit log that ended before the given time.
func (s *Store) CollectAudit(ctx context.Context, before time.Time) error {
	folders, err := s.objects.List(ctx, Query{Prefix: auditFolder, Fold: true})
	if err != nil {
		return failed(err, "list the audit log")
	}
	for _, folder := range folders.Keys {
		days, err := s.objects.List(ctx, Query{Prefix: folder, Fold: true})
		if err != nil {
			return failed(err, "list the audit log")
		}
		for _, day := range days.Keys {
			if name := strings.TrimSuffix(strings.TrimPrefix(day, folder), "/"); name < before.UTC().Format(dayForm) {
				if err := s.deleteAll(ctx, day); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
