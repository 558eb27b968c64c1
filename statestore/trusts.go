package statestore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// trustFolder has an object for each trust; exchangedFolder has one for each identity token that was
// exchanged, in a folder for the day on which the identity token expires.
const (
	trustFolder     = "trusts/"
	exchangedFolder = "exchanged/"
)

// maxIdentityLife limits how long an identity token is good for: that long its exchange must be remembered.
const maxIdentityLife = 7 * 24 * time.Hour

func trustKey(organization, name string) string { return join("trusts", organization, name) }

// PutTrust creates a trust, or replaces one.
func (s *Store) PutTrust(ctx context.Context, t deployments.Trust) error {
	if err := t.Validate(); err != nil {
		return err
	}
	t.Damaged = ""
	defer s.callers.forget()
	for {
		before, tag, err := s.getTrust(ctx, t.Organization, t.Name)
		c := Condition{Tag: tag, Absent: errors.Is(err, ErrAbsent)}
		switch t.Created = before.Created; {
		case errors.Is(err, ErrAbsent), unreadable(err) != nil:
			t.Created = s.now().UTC()
		case err != nil:
			return err
		}
		if err = s.putSealed(ctx, trustKey(t.Organization, t.Name), t, c); !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

func (s *Store) getTrust(ctx context.Context, organization, name string) (t deployments.Trust, tag string, err error) {
	err = validatePair("trust", organization, name)
	if err == nil {
		tag, err = s.getSealed(ctx, trustKey(organization, name), &t)
	}
	return t, tag, err
}

// validatePair reports, as CodeInvalid, that a name within an organization is not valid.
func validatePair(what, organization, name string) error {
	if err := deployments.ValidateName("organization", organization); err != nil {
		return err
	}
	return deployments.ValidateName(what, name)
}

// ListTrusts describes the trusts, sorted by organization and name.
func (s *Store) ListTrusts(ctx context.Context) ([]deployments.Trust, error) {
	return s.trusts(ctx, trustFolder)
}

// TrustsOf describes the trusts of an organization, sorted by name.
func (s *Store) TrustsOf(ctx context.Context, organization string) ([]deployments.Trust, error) {
	if err := deployments.ValidateName("organization", organization); err != nil {
		return nil, err
	}
	return s.trusts(ctx, trustFolder+organization+"/")
}

func (s *Store) trusts(ctx context.Context, folder string) ([]deployments.Trust, error) {
	l, err := s.objects.List(ctx, Query{Prefix: folder})
	if err != nil {
		return nil, failed(err, "list the trusts")
	}
	trusts := make([]deployments.Trust, 0, len(l.Keys))
	for _, key := range l.Keys {
		organization, name, _ := strings.Cut(strings.TrimPrefix(key, trustFolder), "/")
		t, _, err := s.getTrust(ctx, organization, name)
		switch {
		case errors.Is(err, ErrAbsent):
			continue
		case unreadable(err) != nil:
			t = deployments.Trust{Organization: organization, Name: name,
				Grant:   deployments.Grant{Organization: organization},
				Damaged: err.Error() + ", or remove it and add it again"}
		case err != nil:
			return nil, err
		}
		trusts = append(trusts, t)
	}
	return trusts, nil
}

// RemoveTrust removes a trust, and so makes the tokens that it gave worthless.
func (s *Store) RemoveTrust(ctx context.Context, organization, name string) error {
	_, _, err := s.getTrust(ctx, organization, name)
	switch {
	case errors.Is(err, ErrAbsent):
		return deployments.Errorf(deployments.CodeNotFound, "the organization %s has no trust %s: `deployctl trust ls` "+
			"lists those there are", organization, name)
	case err != nil && unreadable(err) == nil:
		return err
	}
	defer s.callers.forget()
	return failed(s.objects.Delete(ctx, trustKey(organization, name)), "remove the trust "+name)
}

// GiveToken returns a token that a trust gives for an identity. CodeUnauthorized when the identity token was exchanged
// before: whoever has copied it gets nothing.
func (s *Store) GiveToken(
	ctx context.Context, t deployments.Trust, i deployments.Identity, lifetime time.Duration,
) (deployments.Exchanged, error) {
	now := s.now().UTC()
	if i.Expires.After(now.Add(maxIdentityLife)) {
		return deployments.Exchanged{}, deployments.Errorf(deployments.CodeUnauthorized,
			"the identity token is good for more than %d days: request one that expires sooner", maxIdentityLife/(24*time.Hour))
	}
	mark := join("exchanged", i.Expires.UTC().Format(dayForm), sha256Hex([]byte(i.Issuer+"\x00"+i.ID)))
	// What is written differs each time: a repeated write of the same content counts as one whose answer was lost.
	_, err := s.objects.Put(ctx, mark, []byte(rand.Text()), Condition{Absent: true})
	if errors.Is(err, ErrChanged) {
		return deployments.Exchanged{}, deployments.Errorf(deployments.CodeUnauthorized,
			"the identity token was exchanged before, and is good for one exchange: request another one from its issuer")
	}
	if err != nil {
		return deployments.Exchanged{}, failed(err, "note that the identity token was exchanged")
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	stored := storedToken{Token: deployments.Token{
		Name:  t.Organization + "." + t.Name + "." + hex.EncodeToString(id[:]),
		Grant: &t.Grant, Expires: now.Add(lifetime).Truncate(time.Second),
		Origin: &deployments.Origin{Trust: t.Organization + "/" + t.Name, Identity: i.Subject, Made: t.Created},
	}}
	text, err := s.newToken(ctx, &stored)
	return deployments.Exchanged{Token: stored.Token, Text: text}, err
}
