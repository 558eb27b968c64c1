package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/creates"
	"github.com/deployctl/deployctl/statestore/programs"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Retention says what Collect keeps of a stack, besides what its head and its running update need.
type Retention struct {
	// Versions is the number of the latest checkpoints that are kept, with everything about their updates; at least 1.
	Versions int
	// Age keeps everything younger; at least a day.
	Age time.Duration
	// most, if not 0, is the most of the latest checkpoints that are kept, however young they are beyond bucket.MinAge:
	// the organization's quota.
	most int
}

// keeps reports whether a checkpoint is kept that is the nth of the latest ones, at a time, and was written at another.
func (r Retention) keeps(nth int, now, written time.Time) bool {
	if r.most > 0 && nth > r.most {
		return written.After(now.Add(-bucket.MinAge))
	}
	return nth <= r.Versions || written.After(now.Add(-r.Age))
}

// minBundleAge is how long an update's project files are kept at least: the update may wait in a queue, which the store
// cannot see.
const minBundleAge = 30 * 24 * time.Hour

// Collected counts what Collect has removed.
type Collected struct {
	Checkpoints int
	Updates     int // their requests, event logs and other objects, except for the history
	Previews    int
	Files       int // of projects
	Blobs       int // large values that an older release has left
}

// Collect removes the objects of a stack that a retention does not keep. Others may use the stack meanwhile: only
// objects are removed that nobody writes or starts to rely on any more, because a head never goes back, a version is
// given out once, and a month does not come again. What cannot be removed now is removed the next time.
func (s *Store) Collect(ctx context.Context, name deployments.StackName, keep Retention) (Collected, error) {
	keep.Versions, keep.Age = max(keep.Versions, 1), max(keep.Age, bucket.MinAge)
	most, _, err := s.Organizations.Limit(ctx, name.Organization, deployments.LimitVersions)
	if err != nil {
		return Collected{}, err
	}
	keep.most = int(most)
	c := collection{Store: s, name: name, keep: keep}
	if c.head, err = s.Head(ctx, name); err != nil || c.head.Active != nil && c.head.Active.Version == removal {
		return Collected{}, err
	}
	for _, part := range []func(context.Context) error{c.checkpoints, c.updates, c.previews, c.files, c.blobs,
		c.absences} {
		if err := part(ctx); err != nil {
			return c.Collected, err
		}
	}
	return c.Collected, nil
}

// collection is a Collect in progress.
type collection struct {
	*Store
	Collected
	name   deployments.StackName
	keep   Retention
	head   Head // as it was at the start; it can only have advanced
	oldest int  // oldest version that is kept
}

// before returns the latest time of the last write of an object of that age.
func (c *collection) before(age time.Duration) time.Time { return c.now().Add(-age) }

// checkpoints removes the checkpoints of old versions.
func (c *collection) checkpoints(ctx context.Context) error {
	versions, written, err := c.versions(ctx, c.name)
	if err != nil {
		return err
	}
	c.oldest = c.head.Version
	latest := 0
	for i, version := range slices.Backward(versions) {
		if version <= c.head.Version {
			latest++
		}
		if c.keep.keeps(latest, c.now(), written[i]) {
			c.oldest = min(c.oldest, version)
		}
	}
	var gone []string
	for _, version := range versions {
		if version < c.oldest {
			gone = append(gone, checkpointKey(c.name, version))
		}
	}
	return c.remove(ctx, gone, &c.Checkpoints)
}

// versions returns the versions that have a checkpoint, in order, and when each was written.
func (s *Store) versions(ctx context.Context, name deployments.StackName) ([]int, []time.Time, error) {
	prefix := stackobjects.Key(name, "checkpoints", "")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: prefix})
	if err != nil {
		return nil, nil, bucket.Failed(err, "list "+prefix)
	}
	at := make(map[int]time.Time, len(l.Keys))
	var versions []int
	for i, key := range l.Keys {
		number, ok := strings.CutSuffix(key[len(prefix):], checkpointForm)
		version, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue // a person's copy
		}
		versions, at[version] = append(versions, version), l.Written[i]
	}
	slices.Sort(versions)
	written := make([]time.Time, len(versions))
	for i, version := range versions {
		written[i] = at[version]
	}
	return versions, written, nil
}

// updates removes the objects of updates before the oldest version. Those have ended: versions end in order.
func (c *collection) updates(ctx context.Context) error {
	prefix := stackobjects.Key(c.name, "updates", "")
	l, err := c.objects.List(ctx, bucket.Query{Prefix: prefix, Fold: true})
	if err != nil {
		return bucket.Failed(err, "list "+prefix)
	}
	for _, folder := range l.Keys {
		if n, err := strconv.Atoi(path.Base(folder)); err != nil || n >= c.oldest {
			continue
		}
		if err := c.sealed.DeleteAll(ctx, folder); err != nil {
			return err
		}
		c.Collected.Updates++
	}
	return nil
}

// previews removes the previews to which nothing was added for the retention's age.
func (c *collection) previews(ctx context.Context) error {
	prefix := stackobjects.Key(c.name, "updates", "")
	l, err := c.objects.List(ctx, bucket.Query{Prefix: prefix + "p"})
	if err != nil {
		return bucket.Failed(err, "list "+prefix)
	}
	keys, last := map[string][]string{}, map[string]time.Time{}
	for i, key := range l.Keys {
		preview, _, _ := strings.Cut(key[len(prefix):], "/")
		keys[preview] = append(keys[preview], key)
		if l.Written[i].After(last[preview]) {
			last[preview] = l.Written[i]
		}
	}
	removed := 0
	for preview, at := range last {
		if at.After(c.before(c.keep.Age)) {
			continue
		}
		if err := c.remove(ctx, keys[preview], &removed); err != nil {
			return err
		}
		c.Previews++
	}
	return nil
}

// files removes the project files of months that ended longer ago than they are kept.
func (c *collection) files(ctx context.Context) error {
	folder := programs.Files(c.ring(c.head.ID).Stack)
	l, err := c.objects.List(ctx, bucket.Query{Prefix: folder, Fold: true})
	if err != nil {
		return bucket.Failed(err, "list the project files of "+c.name.String())
	}
	kept := c.before(max(c.keep.Age, minBundleAge))
	for _, folder := range l.Keys {
		if end, ok := programs.EndOf(folder); !ok || end.After(kept) {
			continue
		}
		if err := c.removeOld(ctx, folder, kept, &c.Files); err != nil {
			return err
		}
	}
	return nil
}

// blobs removes what older releases left: large values that all updates of a stack shared, and project files without a
// month. Only an update that began then may still need them.
func (c *collection) blobs(ctx context.Context) error {
	if c.head.Active != nil {
		return nil
	}
	return c.removeOld(ctx, c.ring(c.head.ID).BlobKey(""), c.before(max(c.keep.Age, minBundleAge)), &c.Blobs)
}

// absences removes the records that a resource did not exist before its create, and of what lost creates have made,
// once no create that may have happened needs them: each create of a type with a settle rule writes one. What tells of
// several creates stays while any of the stack's may have happened. The next attempt writes a missing record again. The
// state, which may be large, is read only if there are old records.
func (c *collection) absences(ctx context.Context) error {
	if c.head.Active != nil {
		return nil
	}
	prefix := creates.Folder(c.name)
	l, err := c.objects.List(ctx, bucket.Query{Prefix: prefix})
	if err != nil {
		return bucket.Failed(err, "list "+prefix)
	}
	var gone []string
	for i, key := range l.Keys {
		if l.Written[i].Before(c.before(max(c.keep.Age, minBundleAge))) {
			gone = append(gone, key)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	needed, err := c.neededRecords(ctx)
	if err != nil {
		return nil //nolint:nilerr // it is unknown which are needed
	}
	removed := 0
	return c.remove(ctx, slices.DeleteFunc(gone, func(key string) bool {
		return needed[key] || len(needed) > 0 && creates.OfSeveral(key)
	}), &removed)
}

// neededRecords returns the keys of the records of the pending operations of the newest state.
func (c *collection) neededRecords(ctx context.Context) (map[string]bool, error) {
	needed := map[string]bool{}
	if c.head.Version == 0 {
		return needed, nil
	}
	data, err := c.checkpointJSON(ctx, c.name, c.head.Version)
	if err != nil {
		return nil, err
	}
	if !json.Valid(data) {
		return nil, unusable(checkpointKey(c.name, c.head.Version), errors.New("it is no JSON"))
	}
	for raw := range rawjson.Elements(rawjson.Member(rawjson.Member(data, "deployment"), "pending_operations")) {
		var operation struct {
			Seed []byte `json:"seed"`
		}
		if err := json.Unmarshal(raw, &operation); err != nil {
			return nil, err
		}
		for _, key := range creates.Keys(c.ring(c.head.ID).Stack, c.name, operation.Seed) {
			needed[key] = true
		}
	}
	return needed, nil
}

// removeOld removes the objects directly in a folder that were last written before a time.
func (c *collection) removeOld(ctx context.Context, folder string, before time.Time, count *int) error {
	l, err := c.objects.List(ctx, bucket.Query{Prefix: folder, Fold: true})
	if err != nil {
		return bucket.Failed(err, "list "+folder)
	}
	var gone []string
	for i, key := range l.Keys {
		if !strings.HasSuffix(key, "/") && l.Written[i].Before(before) {
			gone = append(gone, key)
		}
	}
	return c.remove(ctx, gone, count)
}

func (c *collection) remove(ctx context.Context, keys []string, count *int) error {
	err := bucket.Each(keys, func(key string) error { return bucket.Failed(c.objects.Delete(ctx, key), "delete "+key) })
	if err == nil {
		*count += len(keys)
	}
	return err
}
