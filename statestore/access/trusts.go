package access

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// exchangedFolder has an object for each identity token that was exchanged, in a folder for the day on which the
// identity token expires.
const exchangedFolder = "exchanged/"

// maxIdentityLife limits how long an identity token is good for: that long its exchange must be remembered.
const maxIdentityLife = 7 * 24 * time.Hour

func (s *Store) trusts() owned[deployments.Trust] {
	return owned[deployments.Trust]{
		Store: s, kind: "trust", created: func(t *deployments.Trust) *time.Time { return &t.Created },
		size: deployments.Trust.Size,
		damaged: func(organization, name, why string) deployments.Trust {
			grant := deployments.Grant{Organization: organization}
			return deployments.Trust{Organization: organization, Name: name, Grant: grant, Damaged: why}
		},
	}
}

// PutTrust creates a trust, or replaces one.
func (s *Store) PutTrust(ctx context.Context, t deployments.Trust) error {
	if err := t.Validate(); err != nil {
		return err
	}
	t.Damaged = ""
	defer s.issuers.forget(t.Organization, s.trusts().key(t.Organization, t.Name))
	return s.trusts().put(ctx, t.Organization, t.Name, t)
}

// ListTrusts describes the trusts, sorted by organization and name.
func (s *Store) ListTrusts(ctx context.Context) ([]deployments.Trust, error) {
	return s.TrustsOf(ctx, deployments.AnyOrganization)
}

// TrustsOf describes the trusts of an organization, or all with AnyOrganization, sorted by organization and name.
func (s *Store) TrustsOf(ctx context.Context, organization string) ([]deployments.Trust, error) {
	return s.trusts().list(ctx, organization)
}

// AnyTrust describes a trust, which may be damaged; CodeNotFound when there is none of this name.
func (s *Store) AnyTrust(ctx context.Context, organization, name string) (deployments.Trust, error) {
	return s.trusts().any(ctx, organization, name)
}

// RemoveTrust removes a trust, and so makes the tokens that it gave worthless.
func (s *Store) RemoveTrust(ctx context.Context, organization, name string) error {
	defer s.issuers.forget(organization, s.trusts().key(organization, name))
	return s.trusts().remove(ctx, organization, name)
}

// GiveToken returns a token that a trust gives for an identity. CodeUnauthorized when the identity token was exchanged
// before: whoever has copied it gets nothing.
func (s *Store) GiveToken(
	ctx context.Context, t deployments.Trust, i deployments.Identity, lifetime time.Duration,
) (deployments.Exchanged, error) {
	now := s.sealed.Now().UTC()
	if i.Expires.After(now.Add(maxIdentityLife)) {
		return deployments.Exchanged{}, deployments.Errorf(deployments.CodeUnauthorized,
			"the identity token is good for more than %d days: request one that expires sooner", maxIdentityLife/(24*time.Hour))
	}
	if err := s.roomForToken(ctx, t.Organization); err != nil {
		return deployments.Exchanged{}, err
	}
	if err := s.spend(ctx, i); err != nil {
		return deployments.Exchanged{}, err
	}
	begin := tokensOfSubject(t, i)
	if err := s.endOldest(ctx, begin, i.Subject); err != nil {
		return deployments.Exchanged{}, err
	}
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails
	stored := storedToken{Token: deployments.Token{
		Name:  begin + hex.EncodeToString(id[:]),
		Grant: &t.Grant, Expires: now.Add(lifetime).Truncate(time.Second),
		Origin: &deployments.Origin{Trust: t.Organization + "/" + t.Name, Identity: i.Subject, Made: t.Created},
	}}
	text, err := s.newToken(ctx, &stored)
	return deployments.Exchanged{Token: stored.Token, Text: text}, err
}

// maxOfSubject limits the tokens that a trust has given for one subject; tests set another.
var maxOfSubject = 500

// tokensOfSubject returns what the names of the tokens begin with that a trust gives for the subject of an identity. A
// few of others begin so, too.
func tokensOfSubject(t deployments.Trust, i deployments.Identity) string {
	return t.Organization + "." + t.Name + "." + sha256Hex([]byte(i.Subject))[:4]
}

// endOldest removes the oldest tokens for a subject when there are as many as there can be, a tenth of them: so that
// one who logs in again and again leaves room for the others of the organization, and is not looked through each time.
func (s *Store) endOldest(ctx context.Context, begin, subject string) error {
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: TokenFolder + begin})
	if err != nil || len(l.Keys) < maxOfSubject {
		return bucket.Failed(err, "list the tokens of the identity")
	}
	list, err := s.tokensAt(ctx, l.Keys, func(t deployments.Token) bool {
		return t.Origin != nil && t.Origin.Identity == subject
	})
	if err != nil || len(list) < maxOfSubject {
		return err
	}
	slices.SortFunc(list, func(a, b deployments.Token) int { return a.Created.Compare(b.Created) })
	for _, t := range list[:len(list)-maxOfSubject+max(1, maxOfSubject/10)] {
		err := s.RemoveToken(ctx, t.Name)
		if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound { // another login has removed it
			return err
		}
	}
	return nil
}

// spend notes that an identity token was exchanged; CodeUnauthorized when it was before.
func (s *Store) spend(ctx context.Context, i deployments.Identity) error {
	mark := bucket.Key("exchanged", i.Expires.UTC().Format(dayForm), sha256Hex([]byte(i.Issuer+"\x00"+i.ID)))
	// What is written differs each time: a repeated write of the same content counts as one whose answer was lost.
	_, err := s.sealed.Objects.Put(ctx, mark, []byte(rand.Text()), bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		return deployments.Errorf(deployments.CodeUnauthorized,
			"the identity token was exchanged before, and is good for one exchange: request another one from its issuer")
	}
	return bucket.Failed(err, "note that the identity token was exchanged")
}
