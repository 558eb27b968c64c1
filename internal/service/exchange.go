package service

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service/identity"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore/access"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// mostNameless is how many trusts of an issuer an organization may have that is looked at though nobody has named it:
// everybody who logs in without a name waits for the reads.
const mostNameless = 100

// Exchange gives a token for an identity token that a trust of the organization is for: the first one by name. The
// trust and the identity are returned also if no token is given though there is one. CodeUnauthorized when there is
// none, or the identity token is not good.
func (s *Service) Exchange(ctx context.Context, e deployments.Exchange) (deployments.Exchanged, error) {
	i, by, err := s.identify(ctx, e.Organization, e.Token)
	if len(by) > 0 && deployments.CodeOf(err) == deployments.CodeUnauthorized {
		slog.Info("an identity token of an issuer that is trusted was not accepted", "organization", e.Organization,
			"issuer", i.Issuer, "error", err)
		err = errNoTrust(e.Organization)
	}
	if err != nil {
		return deployments.Exchanged{}, err
	}
	t, err := s.trusting(ctx, i, by)
	switch {
	case err != nil:
		return deployments.Exchanged{}, err
	case t == nil:
		return deployments.Exchanged{}, errNoTrust(e.Organization)
	}
	given, err := s.give(ctx, *t, i, e)
	if err != nil {
		given.Origin = &deployments.Origin{Trust: t.Organization + "/" + t.Name, Identity: i.Subject}
	}
	return given, err
}

// errNoTrust is the same for an organization that does not exist, or trusts another issuer or another identity, and for
// a token that its issuer has not made: strangers do not learn which organizations there are, and whom they trust.
func errNoTrust(organization string) error {
	return deployments.Errorf(deployments.CodeUnauthorized, "no trust of the organization %s is for this identity token, "+
		"or the token is not good any more: request another one, and have an admin compare its issuer, audience and claims "+
		"with `deployctl trust ls`; the log of the service says more", organization)
}

// Admitting returns the organizations with a trust that an identity token is for, sorted. CodeUnauthorized when the
// token is not good. Nothing is exchanged for it.
func (s *Service) Admitting(ctx context.Context, token string) (admitting []string, err error) {
	i, by, err := s.identify(ctx, deployments.AnyOrganization, token)
	if err != nil {
		return nil, err
	}
	of := map[string][]deployments.TrustName{}
	for _, t := range by {
		of[t.Organization] = append(of[t.Organization], t)
	}
	var mu sync.Mutex
	err = bucket.Each(slices.Sorted(maps.Keys(of)), func(organization string) error {
		trusts := of[organization]
		if len(trusts) > mostNameless {
			slog.Warn("an organization is left out of a login that names none", "organization", organization, "error",
				fmt.Sprintf("it has %d trusts of %s, and those with more than %d are not looked through", len(trusts), i.Issuer,
					mostNameless))
			return nil
		}
		part, release := mempool.Part(ctx)
		defer release()
		t, err := s.trusting(part, i, trusts)
		if deployments.CodeOf(err) == deployments.CodeInvalid { // its trusts are too large, or take too long to compare
			slog.Warn("an organization is left out of a login that names none", "organization", organization, "error", err)
			return nil
		}
		if t != nil {
			mu.Lock()
			defer mu.Unlock()
			admitting = append(admitting, organization)
		}
		return err
	})
	slices.Sort(admitting)
	return admitting, err
}

// identify returns who an identity token is of, and which trusts of an organization, or of all with AnyOrganization,
// are of its issuer. Without any, the token is not verified: who names another issuer has nobody asked. Before it is
// verified, no trust is read.
func (s *Service) identify(
	ctx context.Context, organization, token string,
) (i deployments.Identity, by []deployments.TrustName, err error) {
	if s.Identities == nil {
		return i, nil, deployments.Errorf(deployments.CodeInvalid, "this service exchanges no identity tokens")
	}
	i.Issuer, err = identity.IssuerOf(token)
	if err != nil {
		return i, nil, err
	}
	by, err = s.TrustsBy(ctx, organization, i.Issuer)
	if err == nil && len(by) > 0 {
		var verified deployments.Identity
		if verified, err = s.Identities.Verify(ctx, i.Issuer, token); err == nil {
			i = verified
		}
	}
	return i, by, err
}

// trusting returns the first of several trusts that an identity is for; nil if none is.
func (s *Service) trusting(
	ctx context.Context, i deployments.Identity, by []deployments.TrustName,
) (*deployments.Trust, error) {
	of, err := access.TrustsAt(ctx, s.rights.Store, by, i.Issuer)
	if err != nil {
		return nil, err
	}
	return matching(i, of)
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
