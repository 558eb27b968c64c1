package statestore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// PutRequest stores an update's request, sealed, including secrets, so that any worker can host the update later.
func (s *Store) PutRequest(ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest) error {
	return s.putRequest(ctx, u, r, bucket.Condition{})
}

// putRequest seals a request for the stack for which it was submitted. The process may still know a former stack of the
// name: it reads the head meanwhile.
func (s *Store) putRequest(
	ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest, c bucket.Condition,
) error {
	if r.Submitted == nil || r.Submitted.StackID == "" {
		return s.stacks.PutIf(ctx, u.StackName, stackobjects.UpdateKey(u, "update"), r, c)
	}
	return s.stacks.PutIn(ctx, s.ring(r.Submitted.StackID).Stack, u.StackName, stackobjects.UpdateKey(u, "update"), r, c)
}

// BeginPreview stores the request of a preview. CodeConflict: another workflow run has begun the preview.
func (s *Store) BeginPreview(ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest) error {
	err := s.putRequest(ctx, u, r, bucket.Condition{Absent: true})
	if !errors.Is(err, bucket.ErrChanged) {
		return err
	}
	begun, err := s.Request(ctx, u)
	if err == nil && (begun.Submitted == nil || begun.Submitted.Run != r.Submitted.Run) {
		err = deployments.Errorf(deployments.CodeConflict, "the preview %s was begun before: ask for another one", u)
	}
	return err
}

// Request returns what PutRequest or BeginPreview stored; CodeNotFound when there is none.
func (s *Store) Request(ctx context.Context, u deployments.UpdateName) (deployments.UpdateRequest, error) {
	var r deployments.UpdateRequest
	_, err := s.stacks.GetJSON(ctx, u.StackName, stackobjects.UpdateKey(u, "update"), &r)
	return r, err
}

// PutInfo stores or replaces the description of an update. A numbered update becomes part of its stack's history.
func (s *Store) PutInfo(ctx context.Context, info deployments.UpdateInfo) error {
	return s.stacks.PutJSON(ctx, info.Update.StackName, infoKey(info.Update), info)
}

// BeginInfo stores the description of an update that begins, unless there is one: then it returns that one and false.
func (s *Store) BeginInfo(
	ctx context.Context, info deployments.UpdateInfo,
) (there deployments.UpdateInfo, begun bool, err error) {
	err = s.stacks.PutIf(ctx, info.Update.StackName, infoKey(info.Update), info, bucket.Condition{Absent: true})
	if !errors.Is(err, bucket.ErrChanged) {
		return info, err == nil, err
	}
	there, err = s.Info(ctx, info.Update)
	return there, false, err
}

// Info returns the description of an update; CodeNotFound when there is none.
func (s *Store) Info(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
	var info deployments.UpdateInfo
	_, err := s.stacks.GetJSON(ctx, u.StackName, infoKey(u), &info)
	return info, noUpdate(u, err)
}

// noUpdate says of which update there is nothing; its cause stays ErrAbsent.
func noUpdate(u deployments.UpdateName, err error) error {
	if !errors.Is(err, bucket.ErrAbsent) {
		return err
	}
	return &deployments.Error{Code: deployments.CodeNotFound, Err: err, Message: fmt.Sprintf("the stack %s has no update "+
		"%s, or it is not kept any more: `deployctl stack history` lists those there are", u.StackName, u.Version)}
}

// History returns the latest updates of a stack, newest first, and which of their versions are kept; limit 0 means all.
// Previews are not included, and neither are updates that never began. An entry that cannot be read has the status
// "damaged", with the reason as its error. Only the newest state is checked: it does not count as kept when it is
// damaged.
func (s *Store) History(ctx context.Context, name deployments.StackName, limit int) ([]deployments.UpdateInfo, error) {
	if limit <= 0 {
		limit = mostUpdates
	}
	return s.HistoryPage(ctx, name, deployments.Page{Number: 1, Size: limit})
}

// mostUpdates is more than the updates that a stack can have.
const mostUpdates = deployments.MaxVersion + 1

// HistoryPage returns a page of what History returns. It reads the pages before it, too: only an entry says whether its
// update began.
func (s *Store) HistoryPage(
	ctx context.Context, name deployments.StackName, p deployments.Page,
) ([]deployments.UpdateInfo, error) {
	h, err := s.Head(ctx, name)
	if err != nil {
		return nil, err
	}
	kept, err := s.kept(ctx, name, h)
	if err != nil {
		return nil, err
	}
	from, to := p.Bounds(mostUpdates)
	infos, seen := []deployments.UpdateInfo{}, 0
	if from > 0 { // there may be no such page, which need not be found out by reading all
		q := bucket.Query{Prefix: stackobjects.Key(name, "history", ""), Limit: from + 1}
		if l, err := s.objects.List(ctx, q); err != nil || len(l.Keys) <= from {
			return infos, bucket.Failed(err, "list "+q.Prefix)
		}
	}
	for info, err := range s.began(ctx, name, func() int { return min(to-seen, pageAtOnce) }) {
		if err != nil {
			return nil, err
		}
		if seen++; seen > from {
			info.Kept = slices.Contains(kept, info.Update.Number())
			infos = append(infos, info)
		}
		if seen == to {
			break
		}
	}
	return infos, nil
}

// began returns the updates of a stack that began, the newest first. Ahead says how many of the following it reads at
// once. An error is the last thing that it returns.
func (s *Store) began(
	ctx context.Context, name deployments.StackName, ahead func() int,
) iter.Seq2[deployments.UpdateInfo, error] {
	return func(yield func(deployments.UpdateInfo, error) bool) {
		q := bucket.Query{Prefix: stackobjects.Key(name, "history", "")}
		for {
			q.Limit = ahead()
			l, err := s.objects.List(ctx, q)
			err = bucket.Failed(err, "list "+q.Prefix)
			var infos []deployments.UpdateInfo
			if err == nil {
				infos, err = s.entries(ctx, name, l.Keys)
			}
			if err != nil {
				yield(deployments.UpdateInfo{}, err)
				return
			}
			for _, info := range infos {
				if !info.Unbegun && !yield(info, nil) {
					return
				}
			}
			if !l.More || len(l.Keys) == 0 {
				return
			}
			q.After = l.Keys[len(l.Keys)-1]
		}
	}
}

// entries reads entries of a history. One that cannot be read has the status "damaged".
func (s *Store) entries(
	ctx context.Context, name deployments.StackName, keys []string,
) ([]deployments.UpdateInfo, error) {
	infos := make([]deployments.UpdateInfo, len(keys))
	index := make(map[string]int, len(keys))
	for i, key := range keys {
		index[key] = i
	}
	err := bucket.Each(keys, func(key string) error {
		info := &infos[index[key]]
		_, err := s.stacks.GetJSON(ctx, name, key, info)
		if bucket.Unreadable(err) != nil {
			*info, err = damagedInfo(name, key, err), nil
		}
		return err
	})
	return infos, err
}

// entriesAtOnce limits the entries of a history that UpdatesOf reads ahead, and pageAtOnce those that HistoryPage does.
const entriesAtOnce, pageAtOnce = 64, 1024

// UpdatesOf returns the updates of a stack, the newest first, as History does, but without Kept. Reading them stops
// with the loop over them, so a search reads little more than what it needs. An error is the last thing that it
// returns.
func (s *Store) UpdatesOf(ctx context.Context, name deployments.StackName) iter.Seq2[deployments.UpdateInfo, error] {
	return func(yield func(deployments.UpdateInfo, error) bool) {
		if _, err := s.Head(ctx, name); err != nil {
			yield(deployments.UpdateInfo{}, err)
			return
		}
		next := 1
		s.began(ctx, name, func() int {
			ahead := next
			next = min(2*next, entriesAtOnce)
			return ahead
		})(yield)
	}
}

// kept returns the versions that have a checkpoint, without the newest when that is damaged.
func (s *Store) kept(ctx context.Context, name deployments.StackName, h Head) ([]int, error) {
	versions, err := s.states(ctx, name, h)
	if err != nil || h.Version == 0 {
		return versions, err
	}
	if _, err = s.checkpointJSON(ctx, name, h.Version); bucket.Unreadable(err) == nil {
		return versions, err
	}
	return slices.DeleteFunc(versions, func(v int) bool { return v == h.Version }), nil
}

// states returns the versions that have a state, in order: those whose checkpoint is there, and which the stack has had
// by its head. Before the bucket's heads are authenticated, all that are there count.
func (s *Store) states(ctx context.Context, name deployments.StackName, h Head) ([]int, error) {
	versions, _, err := s.versions(ctx, name)
	if s.authenticated.Load() {
		versions = slices.DeleteFunc(versions, func(v int) bool { return !h.hadState(v) })
	}
	return versions, err
}

// damagedInfo replaces an entry of a history that cannot be read; its key tells the version.
func damagedInfo(name deployments.StackName, key string, err error) deployments.UpdateInfo {
	info := deployments.UpdateInfo{Status: deployments.StatusDamaged, Error: err.Error() +
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
		return stackobjects.Key(u.StackName, "history", fmt.Sprintf("%010d", deployments.MaxVersion+1-n))
	}
	return stackobjects.UpdateKey(u, "info")
}

// SaveDeltas makes deltas durable as the update's save of this number, from 1. A repeated number must have the same
// deltas.
func (s *Store) SaveDeltas(ctx context.Context, u deployments.UpdateName, number int, deltas []engine.Delta) error {
	return s.stacks.PutJSON(ctx, u.StackName, deltaKey(u, number), deltas)
}

// LoadDeltas returns the deltas of the saves from+1 up to and including to, in order. Each save is stored, also one
// without deltas; CodeFormat when one is missing.
func (s *Store) LoadDeltas(ctx context.Context, u deployments.UpdateName, from, to int) ([]engine.Delta, error) {
	keys := make([]string, 0, to-from)
	index := map[string]int{}
	for n := from + 1; n <= to; n++ {
		index[deltaKey(u, n)] = len(keys)
		keys = append(keys, deltaKey(u, n))
	}
	parts := make([][]engine.Delta, len(keys))
	err := bucket.Each(keys, func(key string) error {
		_, err := s.stacks.GetJSON(ctx, u.StackName, key, &parts[index[key]])
		if errors.Is(err, bucket.ErrAbsent) {
			return s.lostSave(ctx, u, key)
		}
		return err
	})
	var all []engine.Delta
	for _, p := range parts {
		all = append(all, p...)
	}
	return all, err
}

// LastSave returns the number of the update's last save; 0 when there is none. CodeFormat when one before it is
// missing.
func (s *Store) LastSave(ctx context.Context, u deployments.UpdateName) (int, error) {
	prefix := stackobjects.UpdateKey(u, "delta", "")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: prefix})
	if err != nil || len(l.Keys) == 0 {
		return 0, bucket.Failed(err, "list "+prefix)
	}
	n := 0
	for _, key := range l.Keys {
		number, err := strconv.Atoi(key[len(prefix):])
		if err != nil || key != deltaKey(u, number) {
			continue // a person's copy
		}
		if number > n+1 {
			if err := s.lostSave(ctx, u, deltaKey(u, n+1)); err != nil {
				return 0, err
			}
		}
		n = number
	}
	return n, nil
}

// lostSave returns the error about a save that is missing, unless an earlier build has begun the update: then it had no
// deltas.
func (s *Store) lostSave(ctx context.Context, u deployments.UpdateName, key string) error {
	h, err := s.Head(ctx, u.StackName)
	if err == nil && (h.Active == nil || h.Active.Version != u.Version || h.Active.EverySave) {
		err = bucket.Damaged(key, errors.New("it is missing, though the update has saved it"))
	}
	return err
}

func deltaKey(u deployments.UpdateName, number int) string {
	return stackobjects.UpdateKey(u, "delta", fmt.Sprintf("%08d", number))
}

// Part names one part of an update's event log. A log has streams with one writer each; the parts of a stream are
// numbered from 1, so that writers need no coordination and a repeated write has no effect.
type Part struct {
	Update deployments.UpdateName
	Stream string // "run", "output-UUID" or ClientStream
	Number int
}

// AppendEvents writes one part of an event log. An existing part of that number is replaced.
func (s *Store) AppendEvents(ctx context.Context, p Part, data []byte) error {
	return s.stacks.Put(ctx, p.Update.StackName, eventsKey(p), data)
}

// readBytes ends a read of several parts once it has so many bytes.
const readBytes = 4 << 20

// ReadEvents returns the parts of a stream from p on, up to the first missing one, or until max or a few MiB are read.
func (s *Store) ReadEvents(ctx context.Context, p Part, max int) ([][]byte, error) {
	var parts [][]byte
	for bytes := 0; len(parts) < max && bytes < readBytes; p.Number++ {
		data, err := s.readEvents(ctx, p)
		if errors.Is(err, bucket.ErrAbsent) {
			break
		}
		if err != nil {
			return parts, err
		}
		parts, bytes = append(parts, data), bytes+len(data)
	}
	return parts, nil
}

func (s *Store) readEvents(ctx context.Context, p Part) ([]byte, error) {
	if p.Stream == ClientStream {
		_, data, err := s.getLog(ctx, clientEvents, p.Update, p.Number)
		return data, err
	}
	data, _, err := s.stacks.Get(ctx, p.Update.StackName, eventsKey(p))
	return data, err
}

// Streams returns the names of an event log's streams, sorted.
func (s *Store) Streams(ctx context.Context, u deployments.UpdateName) ([]string, error) {
	prefix := stackobjects.UpdateKey(u, eventsFolder, "")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: prefix, Fold: true})
	names := make([]string, len(l.Keys))
	for i, key := range l.Keys {
		names[i] = key[len(prefix) : len(key)-1]
	}
	return names, bucket.Failed(err, "list "+prefix)
}

func eventsKey(p Part) string {
	return stackobjects.UpdateKey(p.Update, eventsFolder, p.Stream, fmt.Sprintf("%08d", p.Number))
}
