package access

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// reads counts the objects that are read.
type reads struct {
	bucket.Objects
	read atomic.Int64
}

func (r *reads) Get(ctx context.Context, key string) (bucket.Object, error) {
	r.read.Add(1)
	return r.Objects.Get(ctx, key)
}

func TestTheIssuersOfTrustsAreKnownForSecondsAndWhatTheyAllowIsReadEachTime(t *testing.T) {
	objects, now := &reads{Objects: &bucket.Memory{}}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s, err := over(objects, clock)
	done(t, err)
	other, err := over(objects, clock) // of another process
	done(t, err)
	trust := deployments.Trust{Organization: "acme", Name: "a", Issuer: "https://a.example",
		Conditions: []deployments.Condition{{Claim: "sub", Pattern: "x"}}, Grant: on(deployments.RoleViewer)}
	of := func(s *Store, organization, issuer string) string {
		t.Helper()
		names, err := s.TrustsBy(t.Context(), organization, issuer)
		done(t, err)
		trusts, err := TrustsAt(t.Context(), s, names, issuer)
		done(t, err)
		var found []string
		for _, one := range trusts {
			found = append(found, one.Name)
		}
		return strings.Join(found, " ")
	}
	wants := func(s *Store, issuer, want string) {
		t.Helper()
		for _, organization := range []string{"acme", deployments.AnyOrganization} {
			if got := of(s, organization, issuer); got != want {
				t.Errorf("of %s are %q, not %q", issuer, got, want)
			}
		}
	}
	wants(s, trust.Issuer, "")
	done(t, s.PutTrust(t.Context(), trust))
	trust.Name = "b"
	done(t, s.PutTrust(t.Context(), trust))
	wants(s, trust.Issuer, "a b")
	objects.read.Store(0)
	if wants(s, "https://b.example", ""); objects.read.Load() > 0 {
		t.Errorf("for another issuer, %d were read", objects.read.Load())
	}
	if of(s, "initech", trust.Issuer) != "" {
		t.Error("another organization has them")
	}
	trust.Issuer = "https://b.example"
	done(t, s.PutTrust(t.Context(), trust))
	wants(s, trust.Issuer, "b")
	wants(s, "https://a.example", "a")
	done(t, other.RemoveTrust(t.Context(), "acme", "a"))
	wants(s, "https://a.example", "") // at once
	trust.Issuer = "https://c.example"
	done(t, other.PutTrust(t.Context(), trust))
	wants(s, "https://b.example", "") // at once
	now = now.Add(issuerFor)
	wants(s, "https://c.example", "b")
}

func TestWhoLogsInAgainAndAgainLeavesRoomForOthersAndTheirOldestTokensEnd(t *testing.T) {
	s, now := people(t)
	defer func(before, tokens int) { maxOfSubject, maxTokens = before, tokens }(maxOfSubject, maxTokens)
	maxOfSubject, maxTokens = 20, 25
	trust := deployments.Trust{Organization: "acme", Name: "ci", Issuer: "https://issuer.example",
		Conditions: []deployments.Condition{{Claim: "sub", Pattern: "x"}}, Grant: on(deployments.RoleViewer)}
	done(t, s.PutTrust(t.Context(), trust))
	trust, err := s.AnyTrust(t.Context(), "acme", "ci")
	done(t, err)
	given := func(subject string, n int) deployments.Exchanged {
		t.Helper()
		got, err := s.GiveToken(t.Context(), trust, deployments.Identity{Issuer: trust.Issuer, Subject: subject,
			ID: subject + strconv.Itoa(n), Expires: now.Add(time.Hour)}, time.Hour)
		done(t, err)
		return got
	}
	other := given("ann", 0)
	var texts []string
	for n := range 3 * maxOfSubject {
		texts = append(texts, given("eve", n).Text)
		if list, err := s.TokensOf(t.Context(), "acme"); err != nil || len(list) > maxOfSubject+1 {
			t.Fatalf("after %d logins, there are %d tokens, %v", n+1, len(list), err)
		}
	}
	for n, text := range texts {
		_, err := s.Authenticate(t.Context(), text)
		old := n < len(texts)-maxOfSubject
		if last := n >= len(texts)-maxOfSubject*9/10; old && err == nil || last && err != nil {
			t.Errorf("the token of login %d of %d: %v", n+1, len(texts), err)
		}
	}
	if _, err := s.Authenticate(t.Context(), other.Text); err != nil {
		t.Errorf("the token of another: %v", err)
	}
	given("bob", 0)
}
