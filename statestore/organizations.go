package statestore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// organizationFolder has an empty object for each organization that has its own workers.
const organizationFolder = "organizations/"

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
	_, err := s.objects.Put(ctx, organizationFolder+organization, nil, Condition{Absent: true})
	if errors.Is(err, ErrChanged) {
		return nil
	}
	return failed(err, "note that the organization "+organization+" has workers of its own")
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
	return failed(s.objects.Delete(ctx, organizationFolder+organization),
		"have the organization "+organization+" share its workers")
}

// ListDedicated lists the organizations that have their own workers, sorted by name.
func (s *Store) ListDedicated(ctx context.Context) ([]Dedicated, error) {
	l, err := s.objects.List(ctx, Query{Prefix: organizationFolder})
	if err != nil {
		return nil, failed(err, "list the organizations that have workers of their own")
	}
	dedicated := make([]Dedicated, len(l.Keys))
	for i, key := range l.Keys {
		dedicated[i] = Dedicated{strings.TrimPrefix(key, organizationFolder), l.Written[i]}
	}
	return dedicated, nil
}

// TaskQueue returns the queue of the workers that run an organization's updates. It reads the bucket each time: a
// cached answer could send an update to the workers of others.
func (s *Store) TaskQueue(ctx context.Context, organization string) (string, error) {
	if err := deployments.ValidateName("organization", organization); err != nil {
		return "", err
	}
	// Tag alone cannot tell a missing object from a missing bucket, see classify
	_, err := s.objects.Get(ctx, organizationFolder+organization)
	switch {
	case errors.Is(err, ErrAbsent):
		return s.SharedTaskQueue(), nil
	case err != nil:
		return "", failed(err, "find out whether the organization "+organization+" has workers of its own")
	}
	return s.OrganizationTaskQueue(organization), nil
}
