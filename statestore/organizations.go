package statestore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// organizationFolder has an object for each organization that has workers of its own. That it is there says all: it is
// empty.
const organizationFolder = "organizations/"

// Dedicated is an organization that has workers of its own.
type Dedicated struct {
	Organization string
	Since        time.Time
}

// Dedicate has an organization's updates run on its own workers alone, from now on and whether there are any. Doing it
// twice is doing it once.
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

// Share has an organization's updates run on the workers that serve all. CodeNotFound when they do.
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

// ListDedicated lists the organizations that have workers of their own, sorted by name.
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

// TaskQueue returns the queue of the workers on which an organization's updates run. It asks the bucket each time: an
// answer of a time before the organization had its own workers would have it run on those of others.
func (s *Store) TaskQueue(ctx context.Context, organization string) (string, error) {
	if err := deployments.ValidateName("organization", organization); err != nil {
		return "", err
	}
	// its tag alone would not tell what is absent, see classify
	_, err := s.objects.Get(ctx, organizationFolder+organization)
	switch {
	case errors.Is(err, ErrAbsent):
		return s.SharedTaskQueue(), nil
	case err != nil:
		return "", failed(err, "find out whether the organization "+organization+" has workers of its own")
	}
	return s.OrganizationTaskQueue(organization), nil
}
