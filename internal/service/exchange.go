package service

import (
	"context"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service/identity"
)

// Exchange gives a token for an identity token that a trust of the organization is for: the first one by name.
// CodeUnauthorized when there is none, or the identity token is not good.
func (s *Service) Exchange(ctx context.Context, e deployments.Exchange) (deployments.Exchanged, error) {
	i, of, err := s.identify(ctx, e.Organization, e.Token)
	if err != nil {
		return deployments.Exchanged{}, err
	}
	if len(of) == 0 {
		return deployments.Exchanged{}, deployments.Errorf(deployments.CodeUnauthorized,
			"the organization %s trusts no identities of %q: an admin adds a trust with `deployctl trust add`",
			e.Organization, i.Issuer)
	}
	t, err := matching(i, of)
	switch {
	case err != nil:
		return deployments.Exchanged{}, err
	case t != nil:
		return s.give(ctx, *t, i, e)
	}
	return deployments.Exchanged{}, deployments.Errorf(deployments.CodeUnauthorized,
		"no trust of the organization %s is for the identity %q with the audience %q: see `deployctl trust ls`",
		e.Organization, i.Subject, i.Audiences)
}

// Admitting returns the organizations with a trust that an identity token is for, sorted. CodeUnauthorized when the
// token is not good. Nothing is exchanged for it.
func (s *Service) Admitting(ctx context.Context, token string) (admitting []string, err error) {
	i, of, err := s.identify(ctx, deployments.AnyOrganization, token)
	for len(of) > 0 && err == nil {
		one := of[0].Organization
		others := slices.IndexFunc(of, func(t deployments.Trust) bool { return t.Organization != one })
		if others < 0 {
			others = len(of)
		}
		// An organization whose conditions take too long to compare keeps nobody out of others.
		if t, failed := matching(i, of[:others]); failed == nil && t != nil {
			admitting = append(admitting, one)
		}
		of, err = of[others:], ctx.Err()
	}
	return admitting, err
}

// identify returns who an identity token is of, and the trusts of its issuer that an organization has, or all have with
// AnyOrganization, sorted by organization and name. Without any, the token is not verified: who names another issuer
// has nobody asked.
func (s *Service) identify(
	ctx context.Context, organization, token string,
) (i deployments.Identity, of []deployments.Trust, err error) {
	if s.Identities == nil {
		return i, nil, deployments.Errorf(deployments.CodeInvalid, "this service exchanges no identity tokens")
	}
	i.Issuer, err = identity.IssuerOf(token)
	if err != nil {
		return i, nil, err
	}
	of, err = s.TrustsOf(ctx, organization)
	if err != nil {
		return i, nil, err
	}
	of = slices.DeleteFunc(of, func(t deployments.Trust) bool { return t.Issuer != i.Issuer || t.Damaged != "" })
	if len(of) > 0 {
		i, err = s.Identities.Verify(ctx, i.Issuer, token)
	}
	return i, of, err
}

// matching returns the first of several trusts that an identity is for; nil if none is.
func matching(i deployments.Identity, of []deployments.Trust) (*deployments.Trust, error) {
	m := deployments.NewMatching(i.Audiences, i.Claims)
	for _, t := range of {
		if matches, err := m.Matches(t); err != nil || matches {
			return &t, err
		}
	}
	return nil, nil
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
