package updates

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Believed calls visit for the entries of a history whose version is greater than after, the newest first, until it
// returns false. Those that cannot be read are left out: their names alone say nothing.
func (s *Store) Believed(
	ctx context.Context, name deployments.StackName, after int, visit func(deployments.UpdateInfo) bool,
) error {
	l, err := s.newestAfter(ctx, name, "")
	if err != nil {
		return err
	}
	return s.BelievedIn(ctx, name, l, after, visit)
}

// Newest returns the names of some entries of a history, the newest first.
func (s *Store) Newest(ctx context.Context, name deployments.StackName) (bucket.Listing, error) {
	return s.newestAfter(ctx, name, "")
}

// newestAfter returns the names of some entries of a history after one, the newest first.
func (s *Store) newestAfter(ctx context.Context, name deployments.StackName, after string) (bucket.Listing, error) {
	prefix := stackobjects.Key(name, "history", "")
	l, err := s.stacks.Sealed.Objects.List(ctx, bucket.Query{Prefix: prefix, Limit: 8, After: after})
	return l, bucket.Failed(err, "list "+prefix)
}

// BelievedIn is Believed for who has listed the newest entries.
func (s *Store) BelievedIn(
	ctx context.Context, name deployments.StackName, l bucket.Listing, after int, visit func(deployments.UpdateInfo) bool,
) error {
	for {
		for _, key := range l.Keys {
			version := VersionOfEntry(key)
			if version != 0 && version <= after {
				return nil
			}
			var info deployments.UpdateInfo
			_, err := s.stacks.GetJSON(ctx, name, key, &info)
			switch {
			case errors.Is(err, bucket.ErrAbsent), bucket.Unreadable(err) != nil, err == nil && info.Update.Number() != version:
				continue
			case err != nil:
				return err
			case !visit(info):
				return nil
			}
		}
		if !l.More || len(l.Keys) == 0 {
			return nil
		}
		var err error
		if l, err = s.newestAfter(ctx, name, l.Keys[len(l.Keys)-1]); err != nil {
			return err
		}
	}
}

// LatestUpdate returns the newest version that is in a stack's history; 0 when there is none.
func (s *Store) LatestUpdate(ctx context.Context, name deployments.StackName) (int, error) {
	latest := 0
	err := s.Believed(ctx, name, 0, func(info deployments.UpdateInfo) bool {
		latest = info.Update.Number()
		return false
	})
	return latest, err
}
