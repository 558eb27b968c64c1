package organizations

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// Folder has an object for each organization that has its own workers.
const Folder = "organizations/"

// dedication is the content of organizations/ORG.
type dedication struct {
	Since time.Time `json:"since"`
}

// Dedicated is an organization that has its own workers.
type Dedicated struct {
	Organization string
	Since        time.Time
}

// Dedicate restricts an organization's updates to its own workers from now on, even if there are none yet. Repeating it
// has no effect.
func (s *Store) Dedicate(ctx context.Context, organization string) error {
	if err := deployments.ValidateName("organization", organization); err != nil {
		return err
	}
	err := s.sealed.PutReadable(ctx, Folder+organization, dedication{s.sealed.Now().UTC()},
		bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		return nil
	}
	return err
}

// Share lets the shared workers run an organization's updates. CodeNotFound when they do already.
func (s *Store) Share(ctx context.Context, organization string) error {
	if err := deployments.ValidateName("organization", organization); err != nil {
		return err
	}
	queue, err := s.TaskQueue(ctx, organization)
	if err != nil {
		return err
	}
	if queue == s.SharedTaskQueue() {
		return deployments.Errorf(deployments.CodeNotFound, "the organization %s has no workers of its own; "+
			"`deployctl organization ls` lists those that have", organization)
	}
	return bucket.Failed(s.sealed.Objects.Delete(ctx, Folder+organization),
		"have the organization "+organization+" share its workers")
}

// ListDedicated lists the organizations that have their own workers, sorted by name; an object of another writer says
// nothing about one.
func (s *Store) ListDedicated(ctx context.Context) ([]Dedicated, error) {
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: Folder})
	if err != nil {
		return nil, bucket.Failed(err, "list the organizations that have workers of their own")
	}
	found := make([]dedication, len(l.Keys))
	index := make(map[string]int, len(l.Keys))
	for i, key := range l.Keys {
		index[key] = i
	}
	err = bucket.Each(l.Keys, func(key string) error {
		_, err := s.sealed.GetReadable(ctx, key, &found[index[key]])
		if errors.Is(err, bucket.ErrAbsent) || bucket.Unreadable(err) != nil {
			return nil // it shares workers again, or is damaged
		}
		return err
	})
	var dedicated []Dedicated
	for i, key := range l.Keys {
		if since := found[i].Since; !since.IsZero() {
			dedicated = append(dedicated, Dedicated{strings.TrimPrefix(key, Folder), since})
		}
	}
	return dedicated, err
}

// TaskQueue returns the queue of the workers that run an organization's updates. It reads the bucket each time: a
// cached answer could send an update to the workers of others. CodeFormat: what the bucket says was not written by this
// service, so it is not known.
func (s *Store) TaskQueue(ctx context.Context, organization string) (string, error) {
	if err := deployments.ValidateName("organization", organization); err != nil {
		return "", err
	}
	var d dedication
	_, err := s.sealed.GetReadable(ctx, Folder+organization, &d)
	switch {
	case errors.Is(err, bucket.ErrAbsent):
		return s.SharedTaskQueue(), nil
	case err != nil:
		return "", bucket.Failed(err, "find out whether the organization "+organization+" has workers of its own")
	}
	return s.OrganizationTaskQueue(organization), nil
}

// SharedTaskQueue is the queue of the workers of this store that serve all organizations.
func (s *Store) SharedTaskQueue() string { return deployments.StoreTaskQueue(s.of.Identity()) }

// OrganizationTaskQueue is the queue of this store's workers of one organization.
func (s *Store) OrganizationTaskQueue(organization string) string {
	return deployments.OrganizationTaskQueue(s.SharedTaskQueue(), organization)
}
