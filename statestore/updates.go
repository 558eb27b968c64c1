package statestore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// PutRequest stores what an update was asked for, sealed, secrets included, so that any worker can host it later.
func (s *Store) PutRequest(ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest) error {
	return s.putJSON(ctx, u.StackName, updateKey(u, "update"), r)
}

// Request gives what PutRequest stored; CodeNotFound when there is none.
func (s *Store) Request(ctx context.Context, u deployments.UpdateName) (deployments.UpdateRequest, error) {
	var r deployments.UpdateRequest
	err := s.getJSON(ctx, u.StackName, updateKey(u, "update"), &r)
	return r, err
}

// PutInfo stores or replaces the description of an update. A numbered update becomes part of its stack's history.
func (s *Store) PutInfo(ctx context.Context, info deployments.UpdateInfo) error {
	return s.putJSON(ctx, info.Update.StackName, infoKey(info.Update), info)
}

// Info gives the description of an update; CodeNotFound when there is none.
func (s *Store) Info(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
	var info deployments.UpdateInfo
	err := s.getJSON(ctx, u.StackName, infoKey(u), &info)
	return info, err
}

// History gives the latest updates of a stack, the newest first, and which of their versions are kept; limit 0 means
// all. Previews are not among them. An entry that cannot be read has the status "damaged", and its error says why. Of
// the states only the newest is looked at: it is not kept when it is damaged.
func (s *Store) History(ctx context.Context, name deployments.StackName, limit int) ([]deployments.UpdateInfo, error) {
	h, err := s.Head(ctx, name)
	if err != nil {
		return nil, err
	}
	prefix := stackKey(name, "history", "")
	l, err := s.objects.List(ctx, Query{Prefix: prefix, Limit: limit})
	if err != nil {
		return nil, failed(err, "list "+prefix)
	}
	infos := make([]deployments.UpdateInfo, len(l.Keys))
	index := make(map[string]int, len(l.Keys))
	for i, key := range l.Keys {
		index[key] = i
	}
	kept, err := s.kept(ctx, name, h)
	if err != nil {
		return nil, err
	}
	err = each(l.Keys, func(key string) error {
		info := &infos[index[key]]
		err := s.getJSON(ctx, name, key, info)
		if unreadable(err) != nil {
			*info, err = damagedInfo(name, key, err), nil
		}
		info.Kept = slices.Contains(kept, info.Update.Number())
		return err
	})
	return infos, err
}

// kept returns the versions of which there is a checkpoint, without the newest when that is damaged.
func (s *Store) kept(ctx context.Context, name deployments.StackName, h Head) ([]int, error) {
	versions, _, err := s.versions(ctx, name)
	if err != nil || h.Version == 0 {
		return versions, err
	}
	data, err := s.checkpointJSON(ctx, name, h.Version)
	if err == nil {
		err = s.checked(ctx, name, h.Version, data)
	}
	if unreadable(err) == nil {
		return versions, err
	}
	return slices.DeleteFunc(versions, func(v int) bool { return v == h.Version }), nil
}

// damagedInfo stands in a history for an entry that cannot be read. Its key tells which update it was about.
func damagedInfo(name deployments.StackName, key string, err error) deployments.UpdateInfo {
	info := deployments.UpdateInfo{Status: "damaged", Error: err.Error() +
		", or remove the object: nothing depends on it"}
	info.Update.StackName, info.Update.Version = name, "?"
	if version := versionOfEntry(key); version > 0 {
		info.Update.Version = strconv.Itoa(version)
	}
	return info
}

// infoKey sorts the newest numbered update first.
func infoKey(u deployments.UpdateName) string {
	if n := u.Number(); n > 0 {
		return stackKey(u.StackName, "history", fmt.Sprintf("%010d", math.MaxInt32-n))
	}
	return updateKey(u, "info")
}

// SaveDeltas makes deltas durable as the update's save of this number, from 1. Saving a number twice must be with the
// same deltas.
func (s *Store) SaveDeltas(ctx context.Context, u deployments.UpdateName, number int, deltas []engine.Delta) error {
	return s.putJSON(ctx, u.StackName, deltaKey(u, number), deltas)
}

// LoadDeltas gives the deltas of the saves from+1 up to and including to, in order. A save without deltas may be
// missing.
func (s *Store) LoadDeltas(ctx context.Context, u deployments.UpdateName, from, to int) ([]engine.Delta, error) {
	keys := make([]string, 0, to-from)
	index := map[string]int{}
	for n := from + 1; n <= to; n++ {
		index[deltaKey(u, n)] = len(keys)
		keys = append(keys, deltaKey(u, n))
	}
	parts := make([][]engine.Delta, len(keys))
	err := each(keys, func(key string) error {
		err := s.getJSON(ctx, u.StackName, key, &parts[index[key]])
		if errors.Is(err, ErrAbsent) {
			return nil
		}
		return err
	})
	var all []engine.Delta
	for _, p := range parts {
		all = append(all, p...)
	}
	return all, err
}

// LastSave gives the number of the update's last save with deltas; 0 when there is none. It is for recovery, where
// nobody remembers.
func (s *Store) LastSave(ctx context.Context, u deployments.UpdateName) (int, error) {
	prefix := updateKey(u, "delta", "")
	l, err := s.objects.List(ctx, Query{Prefix: prefix})
	if err != nil || len(l.Keys) == 0 {
		return 0, failed(err, "list "+prefix)
	}
	var n int
	if _, err := fmt.Sscanf(l.Keys[len(l.Keys)-1][len(prefix):], "%d", &n); err != nil {
		return 0, damaged(l.Keys[len(l.Keys)-1], err)
	}
	return n, nil
}

func deltaKey(u deployments.UpdateName, number int) string {
	return updateKey(u, "delta", fmt.Sprintf("%08d", number))
}

// Part names one part of an update's event log. A log has streams, each with one writer, and each stream numbered parts
// from 1, so that nobody waits for anybody and a part written twice is written once.
type Part struct {
	Update deployments.UpdateName
	Stream string // a name such as "steps" or "program-2"
	Number int
}

// AppendEvents writes one part of an event log. A number written again is replaced.
func (s *Store) AppendEvents(ctx context.Context, p Part, data []byte) error {
	return s.put(ctx, p.Update.StackName, eventsKey(p), data)
}

// ReadEvents gives the parts of a stream from p on, up to the first that is not there (yet) or until max are read.
func (s *Store) ReadEvents(ctx context.Context, p Part, max int) ([][]byte, error) {
	var parts [][]byte
	for ; len(parts) < max; p.Number++ {
		data, err := s.get(ctx, p.Update.StackName, eventsKey(p))
		if errors.Is(err, ErrAbsent) {
			break
		}
		if err != nil {
			return parts, err
		}
		parts = append(parts, data)
	}
	return parts, nil
}

// Streams gives the names of an event log's streams, sorted.
func (s *Store) Streams(ctx context.Context, u deployments.UpdateName) ([]string, error) {
	prefix := updateKey(u, "events", "")
	l, err := s.objects.List(ctx, Query{Prefix: prefix, Fold: true})
	names := make([]string, len(l.Keys))
	for i, key := range l.Keys {
		names[i] = key[len(prefix) : len(key)-1]
	}
	return names, failed(err, "list "+prefix)
}

func eventsKey(p Part) string {
	return updateKey(p.Update, "events", p.Stream, fmt.Sprintf("%08d", p.Number))
}
