package wire

import (
	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// FromQuota writes the quota of an organization and its use.
func FromQuota(q deployments.QuotaUse) *api.Quota {
	return &api.Quota{Organization: q.Organization, Limits: fromLimits(q.Limits), Used: fromLimits(q.Used), By: q.By,
		Since: fromTime(q.Since), Damaged: q.Damaged}
}

// ToQuota reads the quota of an organization and its use.
func ToQuota(m *api.Quota) deployments.QuotaUse {
	return deployments.QuotaUse{Organization: m.GetOrganization(), Limits: toLimits(m.GetLimits()),
		Used: toLimits(m.GetUsed()), By: m.GetBy(), Since: toTime(m.GetSince()), Damaged: m.GetDamaged()}
}

// FromQuotas writes a list of quotas.
func FromQuotas(list []deployments.QuotaUse) []*api.Quota { return each(list, FromQuota) }

// ToQuotas reads a list of quotas.
func ToQuotas(list []*api.Quota) []deployments.QuotaUse { return each(list, ToQuota) }

// FromQuotaChange writes a change of a quota, without whom it is by.
func FromQuotaChange(c deployments.QuotaChange) *api.SetQuotaRequest {
	m := &api.SetQuotaRequest{Organization: c.Organization, Set: fromLimits(c.Set)}
	for _, l := range c.Removed {
		m.Removed = append(m.Removed, string(l))
	}
	return m
}

// ToQuotaChange reads a change of a quota.
func ToQuotaChange(m *api.SetQuotaRequest) deployments.QuotaChange {
	c := deployments.QuotaChange{Organization: m.GetOrganization(), Set: toLimits(m.GetSet())}
	for _, l := range m.GetRemoved() {
		c.Removed = append(c.Removed, deployments.Limit(l))
	}
	return c
}

func fromLimits(q map[deployments.Limit]int64) map[string]int64 {
	if q == nil {
		return nil
	}
	m := make(map[string]int64, len(q))
	for l, n := range q {
		m[string(l)] = n
	}
	return m
}

func toLimits(m map[string]int64) map[deployments.Limit]int64 {
	if len(m) == 0 {
		return nil
	}
	q := make(map[deployments.Limit]int64, len(m))
	for l, n := range m {
		q[deployments.Limit(l)] = n
	}
	return q
}
