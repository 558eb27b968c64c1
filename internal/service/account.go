package service

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/deployments"
)

// WhoAmI implements deployments.Tokens.
func (s *Service) WhoAmI(ctx context.Context, c deployments.Caller) (deployments.Account, error) {
	a := deployments.Account{Token: c.Token, Member: c.Member, Identity: c.Identity, Grants: c.Grants}
	everywhere := false
	for _, list := range c.Grants {
		for _, g := range list {
			if g.Organization == deployments.AnyOrganization {
				everywhere = true
			} else {
				a.Organizations = append(a.Organizations, g.Organization)
			}
		}
	}
	if everywhere && len(a.Organizations) == 0 {
		found, err := s.Organizations.List(ctx)
		if err != nil {
			return a, err
		}
		a.Organizations = append(found, deployments.DefaultOrganization)
	}
	slices.Sort(a.Organizations)
	a.Organizations = slices.Compact(a.Organizations)
	return a, nil
}
