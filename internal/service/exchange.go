package service

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service/identity"
)

// Exchange gives a token for an identity token that a trust of the organization is for: the first one by name.
// CodeUnauthorized when there is none, or the identity token is not good.
func (s *Service) Exchange(ctx context.Context, e deployments.Exchange) (deployments.Exchanged, error) {
	if s.Identities == nil {
		return deployments.Exchanged{}, deployments.Errorf(deployments.CodeInvalid,
			"this service exchanges no identity tokens")
	}
	issuer, err := identity.IssuerOf(e.Token)
	if err != nil {
		return deployments.Exchanged{}, err
	}
	trusts, err := s.TrustsOf(ctx, e.Organization)
	if err != nil {
		return deployments.Exchanged{}, err
	}
	var of []deployments.Trust
	for _, t := range trusts {
		if t.Issuer == issuer && t.Damaged == "" {
			of = append(of, t)
		}
	}
	if len(of) == 0 { // whoever names another issuer has nobody asked
		return deployments.Exchanged{}, deployments.Errorf(deployments.CodeUnauthorized,
			"the organization %s trusts no identities of %q: an admin adds a trust with `deployctl trust add`",
			e.Organization, issuer)
	}
	i, err := s.Identities.Verify(ctx, issuer, e.Token)
	if err != nil {
		return deployments.Exchanged{}, err
	}
	matching := deployments.NewMatching(i.Audiences, i.Claims)
	for _, t := range of {
		matches, err := matching.Matches(t)
		if err != nil {
			return deployments.Exchanged{}, err
		}
		if matches {
			return s.give(ctx, t, i, e)
		}
	}
	return deployments.Exchanged{}, deployments.Errorf(deployments.CodeUnauthorized,
		"no trust of the organization %s is for the identity %q with the audience %q: see `deployctl trust ls`",
		e.Organization, i.Subject, i.Audiences)
}

// give gives a token by a trust.
func (s *Service) give(
	ctx context.Context, t deployments.Trust, i deployments.Identity, e deployments.Exchange,
) (deployments.Exchanged, error) {
	if e.Role != "" && !t.Grant.Role.Includes(e.Role) {
		return deployments.Exchanged{}, deployments.Errorf(deployments.CodeUnauthorized,
			"the trust %s gives the role %s, and %s was asked for", t.Name, t.Grant.Role, e.Role)
	}
	lifetime := t.Lifetime
	if lifetime == 0 {
		lifetime = deployments.DefaultLifetime
	}
	if e.Lifetime > 0 {
		lifetime = min(lifetime, max(e.Lifetime, time.Second))
	}
	return s.GiveToken(ctx, t, i, lifetime)
}
