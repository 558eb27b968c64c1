package access

import (
	"context"
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
		trusts, err := s.TrustsAt(t.Context(), names, issuer)
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
