package access

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// maxDerived limits the tokens that are made from one token.
const maxDerived = 100

// DeriveToken creates a token from another one, which t.Origin names with the time at which it was created. It may do
// what that one may, as long as that one is good.
func (s *Store) DeriveToken(ctx context.Context, t deployments.Token) (string, error) {
	if t.Origin == nil {
		return "", deployments.Errorf(deployments.CodeInternal, "a token is derived from none")
	}
	from, now := *t.Origin, s.sealed.Now().UTC()
	stored := storedToken{Token: deployments.Token{Name: from.Token + "." + t.Name, Expires: t.Expires,
		Origin: &deployments.Origin{Token: from.Token, Made: from.Made}}}
	for _, name := range []string{t.Name, stored.Name} {
		if err := deployments.ValidateName("token", name); err != nil {
			return "", err
		}
	}
	if !t.Expires.IsZero() && !t.Expires.After(now) {
		return "", outlived(t.Expires)
	}
	if from.Token == deployments.LocalToken {
		all := deployments.Grant{Role: deployments.RoleAdmin, Organization: deployments.AnyOrganization}
		stored.Grant = &all
	} else if err := s.inherit(ctx, &stored); err != nil {
		return "", err
	}
	made, err := s.derivedFrom(ctx, from)
	if err != nil {
		return "", err
	}
	if made >= maxDerived {
		return "", deployments.Errorf(deployments.CodeConflict, "%d tokens were made from %s, and more cannot be: have "+
			"an admin remove some with `deployctl token rm`", maxDerived, from.Token)
	}
	if err := s.roomForToken(ctx, stored.Within()); err != nil {
		return "", err
	}
	return s.newToken(ctx, &stored)
}

// derivedFrom counts the tokens that were made from one. Those of a trust may begin with its name, too.
func (s *Store) derivedFrom(ctx context.Context, from deployments.Origin) (int, error) {
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: TokenFolder + from.Token + "."})
	if err != nil || len(l.Keys) < maxDerived {
		return 0, bucket.Failed(err, "list the tokens")
	}
	tokens, err := s.tokensAt(ctx, l.Keys, func(deployments.Token) bool { return true })
	made := 0
	for _, t := range tokens {
		if t.Damaged != "" || t.Origin != nil && t.Origin.Token == from.Token {
			made++
		}
	}
	return made, err
}

// inherit gives a token what the one has from which it is made.
func (s *Store) inherit(ctx context.Context, t *storedToken) error {
	from, _, err := s.getToken(ctx, t.Origin.Token)
	switch {
	case errors.Is(err, bucket.ErrAbsent), err == nil && !from.Created.Equal(t.Origin.Made):
		return deployments.Errorf(deployments.CodeNotFound, "there is no token %s any more", t.Origin.Token)
	case err != nil:
		return err
	case from.Origin != nil && from.Origin.Token != "":
		return deployments.Errorf(deployments.CodeForbidden, "the token %s was itself made from %s: make another from "+
			"that one", from.Name, from.Origin.Token)
	}
	t.Member, t.Organization, t.Since = from.Member, from.Organization, from.Since
	t.Grant, t.Limit = from.Grant, from.Limit
	if from.Origin != nil {
		t.Origin.Identity = from.Origin.Identity
	}
	if !from.Expires.IsZero() && (t.Expires.IsZero() || from.Expires.Before(t.Expires)) {
		t.Expires = from.Expires
	}
	return nil
}

// originAuthority reduces what a token may do to what its origin may do now; CodeNotFound when that is gone.
func (s *Store) originAuthority(
	ctx context.Context, o *deployments.Origin, a deployments.Authority,
) (deployments.Authority, error) {
	gone := bucket.Failed(bucket.ErrAbsent, "find what the token was made from")
	switch {
	case o == nil || o.Token == deployments.LocalToken:
		return a, nil
	case o.Trust != "":
		organization, name, _ := strings.Cut(o.Trust, "/")
		t, _, err := s.trusts().get(ctx, organization, name)
		if err == nil && !t.Created.Equal(o.Made) || bucket.Unreadable(err) != nil {
			err = gone
		}
		return a.And(deployments.Authority{Grants: [][]deployments.Grant{{t.Grant}}}), err
	case o.Token == "":
		return a, gone // of a later release
	}
	from, _, err := s.getToken(ctx, o.Token)
	if err == nil && (!from.Created.Equal(o.Made) || expired(from.Token, s.sealed.Now())) ||
		bucket.Unreadable(err) != nil {
		err = gone
	}
	if err != nil {
		return a, err
	}
	may, err := s.authorityOf(ctx, from)
	return a.And(may), err
}

func expired(t deployments.Token, at time.Time) bool {
	return !t.Expires.IsZero() && !t.Expires.After(at)
}

// CollectTokens removes tokens that were given or derived and expired before a time, and what is remembered of identity
// tokens that expired before it.
func (s *Store) CollectTokens(ctx context.Context, before time.Time) error {
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: TokenFolder})
	if err != nil {
		return bucket.Failed(err, "list the tokens")
	}
	for _, key := range l.Keys {
		name := strings.TrimPrefix(key, TokenFolder)
		if !strings.Contains(name, ".") {
			continue // an admin created it
		}
		t, _, err := s.getToken(ctx, name)
		if err != nil || t.Origin == nil || !expired(t.Token, before) {
			continue
		}
		if err := s.sealed.Objects.Delete(ctx, key); err != nil {
			return bucket.Failed(err, "remove the token "+name)
		}
	}
	days, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: exchangedFolder, Fold: true})
	if err != nil {
		return bucket.Failed(err, "list the exchanged identities")
	}
	for _, day := range days.Keys {
		name := strings.TrimSuffix(strings.TrimPrefix(day, exchangedFolder), "/")
		if name < before.UTC().Format(dayForm) {
			if err := s.sealed.DeleteAll(ctx, day); err != nil {
				return err
			}
		}
	}
	return nil
}
