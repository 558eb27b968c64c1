package access

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// over is a store over objects, whose clock is that of the machine if there is none.
func over(objects bucket.Objects, now func() time.Time) (*Store, error) {
	keys, err := seal.NewKeyring(make([]byte, 32))
	if err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	return New(&bucket.Sealed{Objects: bucket.Guarded(objects), Keys: keys, Now: now,
		Outdated: func() error { return nil }})
}

// clocked is a store in memory, and its clock.
func clocked(t *testing.T) (*Store, *time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, err := over(&bucket.Memory{}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return s, &now
}

// Nobody waits for it, so that a call costs no write.
func TestTheLastUseOfATokenIsNoted(t *testing.T) {
	s, now := clocked(t)
	text, err := s.CreateToken(t.Context(), deployments.Token{Name: "ci", Grant: &adminOfAll})
	if err == nil {
		_, err = s.Authenticate(t.Context(), text)
	}
	if err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the use is noted", func() bool {
		token, err := s.Token(t.Context(), "ci")
		return err != nil || token.Used.Equal(*now)
	})
}

func TestAnExpiredTokenIsRefusedWithTheTimeAtWhichItExpired(t *testing.T) {
	s, now := clocked(t)
	text, err := s.CreateToken(t.Context(), deployments.Token{Name: "ci", Grant: &adminOfAll,
		Expires: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := s.HasAdmin(t.Context()); err != nil || !found {
		t.Errorf("an admin's token is there: %v, %v", found, err)
	}
	if _, err := s.Authenticate(t.Context(), text); err != nil {
		t.Error(err)
	}
	*now = now.Add(time.Hour)
	_, err = s.Authenticate(t.Context(), text)
	if deployments.CodeOf(err) != deployments.CodeUnauthorized || !strings.Contains(err.Error(),
		"expired at 2026-01-02T04:04:05Z") {
		t.Errorf("got %v", err)
	}
	if found, err := s.HasAdmin(t.Context()); err != nil || found {
		t.Errorf("an expired token is no admin's: %v, %v", found, err)
	}
	_, err = s.CreateToken(t.Context(), deployments.Token{Name: "late", Grant: &adminOfAll, Expires: *now})
	if deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("got %v", err)
	}
}

func TestATokenOfTheTimeBeforeScopesMayDoEverything(t *testing.T) {
	s, _ := clocked(t)
	text := "dctl.old.0123"
	stored := storedToken{Token: deployments.Token{Name: "old"}, Hash: sha256Hex([]byte(text))}
	if err := s.putToken(t.Context(), stored, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	caller, err := s.Authenticate(t.Context(), text)
	if err != nil || !caller.AdministersAll() {
		t.Errorf("got %+v, %v", caller, err)
	}
}

func TestATokenThatWasRemovedByAnotherProcessIsKnownForSecondsOnly(t *testing.T) {
	objects := &bucket.Memory{}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var stores [2]*Store
	for i := range stores {
		s, err := over(objects, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		stores[i] = s
	}
	text, err := stores[0].CreateToken(t.Context(), deployments.Token{Name: "ci", Grant: &adminOfAll})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stores {
		if _, err := s.Authenticate(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := stores[0].RemoveToken(t.Context(), "ci"); err != nil {
		t.Fatal(err)
	}
	if _, err := stores[0].Authenticate(t.Context(), text); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Errorf("the process that removed it: %v", err)
	}
	now = now.Add(callerFor)
	if _, err := stores[1].Authenticate(t.Context(), text); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Errorf("another process, %s later: %v", callerFor, err)
	}
}

// adminOfAll is what an admin of every organization has.
var adminOfAll = deployments.Grant{Role: deployments.RoleAdmin, Organization: deployments.AnyOrganization}

func TestAnOrganizationHasSoManyTokensMembersTeamsTrustsAndProfilesAndNoMore(t *testing.T) {
	before := []int{maxTokens, maxMembers, maxOwned, maxProfiles}
	defer func() { maxTokens, maxMembers, maxOwned, maxProfiles = before[0], before[1], before[2], before[3] }()
	maxTokens, maxMembers, maxOwned, maxProfiles = 3, 3, 3, 3
	s, _ := clocked(t)
	role := func(organization string) deployments.Grant {
		return deployments.Grant{Role: deployments.RoleViewer, Organization: organization}
	}
	for what, makes := range map[string]func(organization string, i int) error{
		"tokens": func(organization string, i int) error {
			g := role(organization)
			_, err := s.CreateToken(t.Context(), deployments.Token{Name: fmt.Sprint(organization, i), Grant: &g})
			return err
		},
		"members": func(organization string, i int) error {
			err := s.GrantMember(t.Context(), fmt.Sprint("m", i), role(organization))
			if err == nil && i == 0 { // their object stays
				err = s.RemoveMember(t.Context(), "m0", organization)
			}
			return err
		},
		"teams": func(organization string, i int) error {
			return s.GrantTeam(t.Context(), fmt.Sprint("t", i), role(organization))
		},
		"profiles": func(organization string, i int) error {
			about := "x"
			_, err := s.ChangeProfile(t.Context(), deployments.ProfileChange{Organization: organization,
				Name: fmt.Sprint("p", i), Description: &about})
			return err
		},
		"trusts": func(organization string, i int) error {
			return s.PutTrust(t.Context(), deployments.Trust{Organization: organization, Name: fmt.Sprint("t", i),
				Issuer: "https://issuer.example", Grant: role(organization),
				Conditions: []deployments.Condition{{Claim: "sub", Pattern: "x"}}})
		},
	} {
		for i := range 4 {
			if err := makes("evil", i); (deployments.CodeOf(err) == deployments.CodeConflict) != (i == 3) {
				t.Errorf("%d %s: %v", i+1, what, err)
			}
		}
		if err := makes("acme", 0); err != nil {
			t.Errorf("%s of another organization: %v", what, err)
		}
	}
}

func TestTokensOfATrustAreNoneThatWereMadeFromAToken(t *testing.T) {
	s, now := clocked(t)
	g := deployments.Grant{Role: deployments.RoleViewer, Organization: "acme"}
	if _, err := s.CreateToken(t.Context(), deployments.Token{Name: "acme", Grant: &g}); err != nil {
		t.Fatal(err)
	}
	made, err := s.Token(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxDerived {
		if _, err := s.GiveToken(t.Context(), deployments.Trust{Organization: "acme", Name: "ci", Grant: g},
			deployments.Identity{ID: fmt.Sprint(i), Expires: now.Add(time.Hour)}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	from := &deployments.Origin{Token: "acme", Made: made.Created}
	for i := range maxDerived + 1 {
		_, err := s.DeriveToken(t.Context(), deployments.Token{Name: fmt.Sprint("d", i), Origin: from})
		if (deployments.CodeOf(err) == deployments.CodeConflict) != (i == maxDerived) {
			t.Fatalf("derived token %d: %v", i+1, err)
		}
	}
}
