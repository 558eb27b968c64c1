package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// saying verifies the tokens that end with "good".
type saying struct{ subject string }

func (s saying) Verify(_ context.Context, issuer, token string) (deployments.Identity, error) {
	if !strings.HasSuffix(token, "good") {
		return deployments.Identity{}, deployments.Errorf(deployments.CodeUnauthorized, "it is not signed")
	}
	return deployments.Identity{Issuer: issuer, Subject: s.subject, Audiences: []string{"console"}, ID: token,
		Expires: time.Now().Add(time.Hour), Claims: map[string]json.RawMessage{"sub": json.RawMessage(`"` + s.subject + `"`)},
	}, nil
}

// trustReads counts the trusts that are read.
type trustReads struct {
	bucket.Memory
	read atomic.Int64
}

func (c *trustReads) Get(ctx context.Context, key string) (bucket.Object, error) {
	if strings.HasPrefix(key, "trusts/") {
		c.read.Add(1)
	}
	return c.Memory.Get(ctx, key)
}

func exchanging(t *testing.T) (*Service, *trustReads) {
	t.Helper()
	objects := &trustReads{}
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	s := New(nil, store, Readers{})
	s.Identities = saying{"ann"}
	return s, objects
}

func (s *Service) trust(t *testing.T, organization, issuer, subject string, count int) {
	t.Helper()
	for i := range count {
		err := s.PutTrust(t.Context(), deployments.Trust{Organization: organization, Name: fmt.Sprint("t", i), Issuer: issuer,
			Audiences:  []string{"console"},
			Conditions: []deployments.Condition{{Claim: "sub", Pattern: subject}},
			Grant:      deployments.Grant{Role: deployments.RoleViewer, Organization: organization}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func tokenOf(issuer, signature string) string {
	claims, _ := json.Marshal(map[string]string{"iss": issuer})
	return "e30." + base64.RawURLEncoding.EncodeToString(claims) + "." + signature
}

func TestAStrangerLearnsNotWhomAnOrganizationTrusts(t *testing.T) {
	s, _ := exchanging(t)
	s.trust(t, "acme", "https://a.example", "bob", 1)
	s.trust(t, "initech", "https://b.example", "bob", 1)
	said := map[string]bool{}
	for _, e := range []deployments.Exchange{
		{Organization: "none", Token: tokenOf("https://a.example", "bad")},
		{Organization: "acme", Token: tokenOf("https://a.example", "bad")},
		{Organization: "acme", Token: tokenOf("https://a.example", "good")},
		{Organization: "initech", Token: tokenOf("https://a.example", "good")},
	} {
		given, err := s.Exchange(t.Context(), e)
		if deployments.CodeOf(err) != deployments.CodeUnauthorized || given.Origin != nil {
			t.Fatalf("%+v is answered %+v, %v", e, given, err)
		}
		said[strings.ReplaceAll(err.Error(), e.Organization, "ORGANIZATION")] = true
	}
	if len(said) != 1 {
		t.Errorf("strangers are told %v", said)
	}
}

func TestATokenThatNobodyHasSignedHasNoTrustRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // what is known is not forgotten meanwhile
		s, objects := exchanging(t)
		s.trust(t, "acme", "https://a.example", "bob", 50)
		objects.read.Store(0)
		for range 10 {
			for _, issuer := range []string{"https://a.example", "https://b.example"} {
				if _, err := s.Exchange(t.Context(), deployments.Exchange{Organization: "acme",
					Token: tokenOf(issuer, "bad")}); deployments.CodeOf(err) != deployments.CodeUnauthorized {
					t.Error(err)
				}
			}
		}
		if n := objects.read.Load(); n != 50 {
			t.Errorf("20 of them had %d trusts read, where 50 are known once they were", n)
		}
	})
}

func TestAnOrganizationWithManyTrustsKeepsNobodyOutOfOthers(t *testing.T) {
	s, _ := exchanging(t)
	s.trust(t, "evil", "https://a.example", "ann", mostNameless+1)
	s.trust(t, "acme", "https://a.example", "ann", mostNameless)
	s.trust(t, "initech", "https://a.example", "bob", 1)
	token := tokenOf("https://a.example", "good")
	if got, err := s.Admitting(t.Context(), token); err != nil || !slices.Equal(got, []string{"acme"}) {
		t.Errorf("%v admit, %v", got, err)
	}
	given, err := s.Exchange(t.Context(), deployments.Exchange{Organization: "evil", Token: token})
	if err != nil || given.Origin.Trust != "evil/t0" {
		t.Errorf("who names it is given %+v, %v", given, err)
	}
	again, err := s.Exchange(t.Context(), deployments.Exchange{Organization: "evil", Token: token})
	if err == nil || again.Origin == nil || again.Origin.Trust != "evil/t0" || again.Text != "" {
		t.Errorf("once more, they are given %+v, %v", again, err)
	}
}
