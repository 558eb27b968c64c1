package updates

import (
	"context"
	"iter"
	"path"
	"slices"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

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
	kept, err := s.of.Kept(ctx, name)
	if err != nil {
		return nil, err
	}
	from, to := p.Bounds(mostUpdates)
	infos, seen := []deployments.UpdateInfo{}, 0
	if from > 0 { // there may be no such page, which need not be found out by reading all
		q := bucket.Query{Prefix: stackobjects.Key(name, "history", ""), Limit: from + 1}
		if l, err := s.stacks.Sealed.Objects.List(ctx, q); err != nil || len(l.Keys) <= from {
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
			l, err := s.stacks.Sealed.Objects.List(ctx, q)
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
		if _, err := s.stacks.Now(ctx, name); err != nil {
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

// damagedInfo replaces an entry of a history that cannot be read; its key tells the version.
func damagedInfo(name deployments.StackName, key string, err error) deployments.UpdateInfo {
	info := deployments.UpdateInfo{Status: deployments.StatusDamaged, Error: err.Error() +
		", or remove the object: nothing depends on it"}
	info.Update.StackName, info.Update.Version = name, "?"
	if version := VersionOfEntry(key); version > 0 {
		info.Update.Version = strconv.Itoa(version)
	}
	return info
}

// VersionOfEntry returns the version of a history's entry; 0 when the key is not one of a history.
func VersionOfEntry(key string) int {
	inverse, err := strconv.Atoi(path.Base(key))
	if err != nil || inverse <= 0 || inverse > deployments.MaxVersion {
		return 0
	}
	return deployments.MaxVersion + 1 - inverse
}

// LastEnded returns the latest update of a stack that has ended, of those that began; nil: none has. The newest may
// run; those before it have ended.
func (s *Store) LastEnded(ctx context.Context, name deployments.StackName) (*deployments.UpdateInfo, error) {
	ahead := 0
	for info, err := range s.began(ctx, name, func() int { ahead++; return ahead }) {
		if err != nil {
			return nil, err
		}
		if !info.Ended.IsZero() || info.Status == deployments.StatusDamaged {
			return &info, nil
		}
	}
	return nil, nil
}
