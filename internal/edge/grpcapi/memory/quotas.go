package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// Quotas describes the quota of an organization, or of all that have one or stacks. Nothing is held against them here.
func (s *Service) Quotas(_ context.Context, organization string) ([]deployments.QuotaUse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]deployments.QuotaUse{}
	of := func(name string) deployments.QuotaUse {
		q := s.quotas[name]
		q.Organization, q.Used = name, map[deployments.Limit]int64{}
		return q
	}
	for name := range s.quotas {
		found[name] = of(name)
	}
	if organization != "" {
		found[organization] = of(organization)
	}
	for name, st := range s.stacks {
		q, known := found[name.Organization]
		if !known {
			q = of(name.Organization)
		}
		q.Used[deployments.LimitStacks]++
		q.Used[deployments.LimitResources] += int64(st.info.Resources)
		found[name.Organization] = q
	}
	var list []deployments.QuotaUse
	for name, q := range found {
		if organization == "" || name == organization {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, func(a, b deployments.QuotaUse) int { return strings.Compare(a.Organization, b.Organization) })
	return list, nil
}

// SetQuota changes a quota.
func (s *Service) SetQuota(_ context.Context, c deployments.QuotaChange) error {
	if err := c.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quotas == nil {
		s.quotas = map[string]deployments.QuotaUse{}
	}
	s.quotas[c.Organization] = deployments.QuotaUse{Limits: s.quotas[c.Organization].Limits.Change(c), By: c.By}
	return nil
}
