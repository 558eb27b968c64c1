package access

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// Audit sends the entries that the query selects, oldest first. A damaged batch is reported in an entry of its own.
func (s *Store) Audit(ctx context.Context, q deployments.AuditQuery, fn func(deployments.AuditEntry) error) error {
	folders := []string{AuditFolder + q.Organization + "/"}
	if q.Organization == deployments.AnyOrganization {
		l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: AuditFolder, Fold: true})
		if err != nil {
			return bucket.Failed(err, "list the audit log")
		}
		folders = l.Keys
	}
	byDay := map[string][]string{}
	for _, folder := range folders {
		// A batch is named by its first minute and may have entries of later ones.
		after := folder + q.Since.Add(-24*time.Hour).UTC().Format(dayForm)
		l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: folder, After: after})
		if err != nil {
			return bucket.Failed(err, "list the audit log")
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
		slices.SortFunc(byDay[day], func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
		for page := range slices.Chunk(byDay[day], auditPage) {
			if err := s.auditOf(ctx, page, q, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// auditPage is how many batches are read at a time, and auditTimes how many times their size they are in memory.
const auditPage, auditTimes = 8, 3

// auditOf sends the entries of a page of batches that the query selects, oldest first. The page has its own memory.
func (s *Store) auditOf(
	ctx context.Context, keys []string, q deployments.AuditQuery, fn func(deployments.AuditEntry) error,
) error {
	page, release := mempool.Part(ctx)
	defer release()
	var mu sync.Mutex
	var entries []deployments.AuditEntry
	err := bucket.Each(keys, func(key string) error {
		batch, err := s.auditBatch(page, key)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		entries = append(entries, slices.DeleteFunc(batch, func(e deployments.AuditEntry) bool { return !q.Selects(e) })...)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b deployments.AuditEntry) int { return a.Time.Compare(b.Time) })
	for _, e := range entries {
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) auditBatch(ctx context.Context, key string) ([]deployments.AuditEntry, error) {
	o, err := s.sealed.Objects.Get(ctx, key)
	if errors.Is(err, bucket.ErrAbsent) {
		return nil, nil // no longer kept
	}
	if err != nil {
		return nil, bucket.Failed(err, "read the audit log")
	}
	if err := mempool.Take(ctx, auditTimes*int64(len(o.Data))); err != nil {
		return nil, err
	}
	plain, err := s.sealed.Keys.Box(seal.PurposeStore).Open(o.Data, key)
	var entries []deployments.AuditEntry
	if err == nil {
		for decoder := json.NewDecoder(bytes.NewReader(plain)); decoder.More(); {
			var e deployments.AuditEntry
			if err = decoder.Decode(&e); err != nil {
				break
			}
			e.Cut()
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
	folder, rest, _ := strings.Cut(strings.TrimPrefix(key, AuditFolder), "/")
	at, _ := time.Parse(dayForm, rest[:min(len(rest), len(dayForm))])
	return deployments.AuditEntry{
		Time: at, Organization: strings.TrimPrefix(folder, nobodys), Method: "damaged",
		Code: deployments.CodeFormat, Error: key + ": " + err.Error(),
	}
}

// CollectAudit removes the days of the audit log that ended before the given time.
func (s *Store) CollectAudit(ctx context.Context, before time.Time) error {
	folders, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: AuditFolder, Fold: true})
	if err != nil {
		return bucket.Failed(err, "list the audit log")
	}
	for _, folder := range folders.Keys {
		days, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: folder, Fold: true})
		if err != nil {
			return bucket.Failed(err, "list the audit log")
		}
		for _, day := range days.Keys {
			if name := strings.TrimSuffix(strings.TrimPrefix(day, folder), "/"); name < before.UTC().Format(dayForm) {
				if err := s.sealed.DeleteAll(ctx, day); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
