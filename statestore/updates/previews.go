package updates

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// LatestPreviews returns the latest previews of a stack that are kept, the newest first, but not more than limit. One
// that cannot be read is left out.
func (s *Store) LatestPreviews(
	ctx context.Context, name deployments.StackName, limit int,
) ([]deployments.UpdateInfo, error) {
	if _, err := s.stacks.Now(ctx, name); err != nil {
		return nil, err
	}
	prefix := stackobjects.Key(name, "updates", "")
	l, err := s.stacks.Sealed.Objects.List(ctx, bucket.Query{Prefix: prefix + "p-"})
	if err != nil {
		return nil, bucket.Failed(err, "list "+prefix)
	}
	var found []int
	for i, key := range l.Keys {
		if strings.HasSuffix(key, "/info") {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int { return l.Written[b].Compare(l.Written[a]) })
	var infos []deployments.UpdateInfo
	for _, i := range found[:min(limit, len(found))] {
		version, _, _ := strings.Cut(strings.TrimPrefix(l.Keys[i], prefix), "/")
		info, err := s.Info(ctx, deployments.UpdateName{StackName: name, Version: version})
		switch {
		case err == nil && info.DryRun:
			infos = append(infos, info)
		case err != nil && !errors.Is(err, bucket.ErrAbsent) && bucket.Unreadable(err) == nil:
			return nil, err
		}
	}
	slices.SortStableFunc(infos, func(a, b deployments.UpdateInfo) int { return b.Started.Compare(a.Started) })
	return infos, nil
}
