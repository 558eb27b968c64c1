package organizations

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// QuotaFolder has a folder for each organization that has, or had, a quota.
const QuotaFolder = "quotas/"

// limitsKey is the quota of an organization. Who can write the bucket can remove it, or put an earlier one back: a
// quota bounds those who use the service.
func limitsKey(organization string) string { return QuotaFolder + organization + "/limits" }

// storedQuota is the content of quotas/ORG/limits.
type storedQuota struct {
	Limits deployments.Quota `json:"limits"`
	By     string            `json:"by,omitempty"`
	Since  time.Time         `json:"since"`
}

const (
	// quotasKept bounds the organizations whose quota is cached, and useKnownFor is how old the count of an organization's
	// resources may be where it is bounded: each counts all its stacks.
	quotasKept  = 1000
	useKnownFor = 15 * time.Second
)

// lastQuota is the quota of an organization as last read, and what it used. Whoever has the turn may read it again;
// others wait for what is read.
type lastQuota struct {
	turn chan struct{}

	limits deployments.Quota
	read   time.Time // zero: never
	use    use
	looked time.Time
}

// use is what the stacks of an organization come to.
type use struct{ stacks, resources, updates int64 }

// withQuota calls fn with what is known of an organization's quota, one call at a time.
func (s *Store) withQuota(ctx context.Context, organization string, fn func(*lastQuota) error) error {
	if err := deployments.ValidateName("organization", organization); err != nil {
		return err
	}
	fresh := &lastQuota{turn: make(chan struct{}, 1)}
	last, known, _ := s.quotas.PeekOrAdd(organization, fresh)
	if !known {
		last = fresh
	}
	select {
	case last.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-last.turn }()
	return fn(last)
}

// Quota returns the quota of an organization, as it was deployments.QuotaKnownWithin ago at the earliest. CodeFormat:
// what the bucket says was not written by this service, so it is not known.
func (s *Store) Quota(ctx context.Context, organization string) (limits deployments.Quota, err error) {
	err = s.withQuota(ctx, organization, func(last *lastQuota) error {
		now := s.sealed.Now()
		if last.read.IsZero() || now.Sub(last.read) >= deployments.QuotaKnownWithin {
			q, _, err := s.readQuota(ctx, organization)
			if err != nil {
				return err
			}
			last.limits, last.read = q.Limits, now
		}
		limits = last.limits
		return nil
	})
	return limits, err
}

// Limit returns one limit of an organization; false when there is none.
func (s *Store) Limit(ctx context.Context, organization string, l deployments.Limit) (int64, bool, error) {
	q, err := s.Quota(ctx, organization)
	n, bounded := q[l]
	return n, bounded, err
}

// readQuota reads the quota of an organization from the bucket, with its tag; empty when there is none.
func (s *Store) readQuota(ctx context.Context, organization string) (q storedQuota, tag string, err error) {
	tag, err = s.sealed.GetJSON(ctx, limitsKey(organization), &q)
	switch {
	case errors.Is(err, bucket.ErrAbsent):
		return storedQuota{}, "", nil
	case bucket.Unreadable(err) != nil:
		err = deployments.Errorf(deployments.CodeFormat, "the quota of the organization %s is not known: %w; or an operator "+
			"sets it again, with all its limits (`deployctl quota set %s`)", organization, err, organization)
	}
	return q, tag, err
}

// SetQuota changes the quota of an organization. One that cannot be read is replaced.
func (s *Store) SetQuota(ctx context.Context, c deployments.QuotaChange) error {
	if err := c.Validate(); err != nil {
		return err
	}
	for {
		was, tag, err := s.readQuota(ctx, c.Organization)
		condition := bucket.Condition{Tag: tag, Absent: tag == ""}
		if bucket.Unreadable(err) != nil {
			was, condition = storedQuota{}, bucket.Condition{}
		} else if err != nil {
			return err
		}
		is := storedQuota{Limits: was.Limits.Change(c), By: c.By, Since: s.sealed.Now().UTC()}
		err = s.sealed.PutJSON(ctx, limitsKey(c.Organization), is, condition)
		if errors.Is(err, bucket.ErrChanged) {
			continue
		}
		if err != nil {
			return err
		}
		return s.withQuota(ctx, c.Organization, func(last *lastQuota) error {
			last.read = time.Time{} // another process may have changed it after this one
			return nil
		})
	}
}

// Quotas describes the quota of an organization, and what it uses; with an empty name, of all that have stacks or a
// quota.
func (s *Store) Quotas(ctx context.Context, organization string) ([]deployments.QuotaUse, error) {
	names := []string{organization}
	if organization == "" {
		var err error
		if names, err = s.quotaNames(ctx); err != nil {
			return nil, err
		}
	}
	list := make([]deployments.QuotaUse, 0, len(names))
	for _, name := range names { // one after another: each reads many objects at a time
		q, err := s.quotaUse(ctx, name)
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

func (s *Store) quotaNames(ctx context.Context) ([]string, error) {
	names, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	folders, err := bucket.Folders(ctx, s.sealed.Objects, []string{QuotaFolder}, "")
	for _, folder := range folders {
		if name := path.Base(folder); deployments.ValidateName("organization", name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

func (s *Store) quotaUse(ctx context.Context, organization string) (deployments.QuotaUse, error) {
	out := deployments.QuotaUse{Organization: organization}
	if err := deployments.ValidateName("organization", organization); err != nil {
		return out, err
	}
	q, _, err := s.readQuota(ctx, organization)
	if bucket.Unreadable(err) != nil {
		out.Damaged, err = err.Error(), nil
	}
	if err != nil {
		return out, err
	}
	out.Limits, out.By, out.Since = q.Limits, q.By, q.Since
	u, err := s.countUse(ctx, organization)
	if err != nil {
		return out, err
	}
	out.Used = map[deployments.Limit]int64{deployments.LimitStacks: u.stacks, deployments.LimitResources: u.resources,
		deployments.LimitUpdates: u.updates}
	if _, counted := q.Limits[deployments.LimitWorkerMinutes]; counted {
		out.Used[deployments.LimitWorkerMinutes], err = s.workerMinutes(ctx, organization)
	}
	return out, err
}

// countUse counts what the stacks of an organization come to. A stack that cannot be read is one.
func (s *Store) countUse(ctx context.Context, organization string) (use, error) {
	names, err := s.folders(ctx, organization)
	if err != nil {
		return use{}, err
	}
	var stacks, resources, updates atomic.Int64
	err = bucket.Each(names, func(text string) error {
		name, err := deployments.ParseStackName(text, deployments.StackName{})
		if err != nil {
			return nil //nolint:nilerr // no stack can have this name
		}
		stack, err := s.of.Head(ctx, name)
		switch {
		case deployments.CodeOf(err) == deployments.CodeNotFound:
			return nil // removed meanwhile, or left by an interrupted removal
		case err != nil && bucket.Unreadable(err) == nil:
			return err
		}
		stacks.Add(1)
		resources.Add(int64(stack.Resources))
		if stack.Update != "" {
			updates.Add(1)
		}
		return nil
	})
	return use{stacks.Load(), resources.Load(), updates.Load()}, err
}

// folders returns the names of what an organization has folders of, sorted.
func (s *Store) folders(ctx context.Context, organization string) (names []string, err error) {
	folders, err := stackobjects.Folders(ctx, s.sealed.Objects, organization, "")
	for _, folder := range folders {
		names = append(names, stackobjects.TextOf(folder))
	}
	slices.Sort(names)
	return names, err
}

// resourcesOf returns how many resources the stacks of an organization had useKnownFor ago at the earliest.
func (s *Store) resourcesOf(ctx context.Context, organization string) (n int64, err error) {
	err = s.withQuota(ctx, organization, func(last *lastQuota) error {
		if now := s.sealed.Now(); last.looked.IsZero() || now.Sub(last.looked) >= useKnownFor {
			if last.use, err = s.countUse(ctx, organization); err != nil {
				return err
			}
			last.looked = now
		}
		n = last.use.resources
		return nil
	})
	return n, err
}

// MayBegin reports, as CodeQuota, that an update or a preview does not begin, because its organization has used up what
// it may. What only settles what an update has left is never held up.
//
// An organization with more resources than its quota allows may do what makes none: nothing is taken from it, and an
// update that goes beyond the quota is not stopped halfway. Without minutes it may still destroy.
func (s *Store) MayBegin(ctx context.Context, r deployments.UpdateRequest) error {
	organization := r.Stack.Organization
	q, err := s.Quota(ctx, organization)
	if err != nil || len(q) == 0 || r.Settle != nil {
		return err
	}
	makes := !r.DryRun && (r.Kind == engine.KindUp || r.Kind == engine.KindImport)
	if most, bounded := q[deployments.LimitResources]; bounded && makes {
		n, err := s.resourcesOf(ctx, organization)
		if err != nil {
			return err
		}
		if n > most {
			return deployments.OverQuota(organization, deployments.LimitResources, most, "has "+
				deployments.Plural(int(n), "resource"), "destroy some first, which is still possible as are previews and refreshes")
		}
	}
	if most, bounded := q[deployments.LimitWorkerMinutes]; bounded && r.Lease == nil && r.Kind != engine.KindDestroy {
		n, err := s.workerMinutes(ctx, organization)
		if err != nil {
			return err
		}
		if n >= most {
			return deployments.OverQuota(organization, deployments.LimitWorkerMinutes, most, "has used "+
				deployments.Plural(int(n), "minute")+" of the workers", "wait until those of 30 days ago do not count any more "+
				"(a destroy is possible meanwhile)")
		}
	}
	return nil
}

// CheckUpload reports, as CodeQuota, that a program is larger than its organization may upload.
func (s *Store) CheckUpload(ctx context.Context, organization string, bytes int64) error {
	most, bounded, err := s.Limit(ctx, organization, deployments.LimitUploadBytes)
	if err != nil || !bounded || bytes <= most {
		return err
	}
	return deployments.OverQuota(organization, deployments.LimitUploadBytes, most, "is sent a program of "+
		deployments.Plural(int(bytes), "byte"), "leave out files that the program does not need, with .deployctlignore")
}
