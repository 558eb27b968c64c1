package access

import (
	"context"
	"crypto/sha256"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/flight"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore/bucket"
)

const (
	// issuerFor is how long the issuer of a trust is remembered, as long as a caller is.
	issuerFor = callerFor
	// maxIssuersKnown limits the trusts whose issuer is remembered.
	maxIssuersKnown = 100_000
)

// trustIssuers remembers of which issuers trusts are, so that an identity token of any issuer, which everybody can
// write, has no trust read. It says where to look, and nothing of what a trust allows: that is read each time.
type trustIssuers struct {
	reading flight.Group[[]listedIssuer]      // of those of an organization
	known   *lru.Cache[string, issuerOfTrust] // by key
}

// issuerOfTrust is the issuer of a trust, by its hash, as it was read at a time.
type issuerOfTrust struct {
	issuer [sha256.Size]byte
	read   time.Time
}

// listedIssuer is the issuer of one of several trusts.
type listedIssuer struct {
	of     deployments.TrustName
	issuer [sha256.Size]byte
}

// TrustsBy returns which trusts of an organization, or of all with AnyOrganization, are of an issuer, sorted by
// organization and name. What another process has changed may be missing for some seconds. All who ask for an
// organization at once wait for one read.
func (s *Store) TrustsBy(ctx context.Context, organization, issuer string) (by []deployments.TrustName, err error) {
	all, err := s.issuers.reading.Do(ctx, organization, "reading trusts",
		func(ctx context.Context) ([]listedIssuer, error) {
			return s.readIssuers(mempool.Without(ctx), organization)
		})
	switch {
	case ctx.Err() != nil:
		return nil, bucket.Failed(ctx.Err(), "list the trusts")
	case err != nil:
		return nil, err
	}
	asked := sha256.Sum256([]byte(issuer))
	for _, one := range all {
		if one.issuer == asked {
			by = append(by, one.of)
		}
	}
	return by, nil
}

// readIssuers lists trusts with their issuers, and reads those whose issuer is not known.
func (s *Store) readIssuers(ctx context.Context, organization string) ([]listedIssuer, error) {
	o := s.trusts()
	keys, err := o.keys(ctx, organization)
	if err != nil {
		return nil, err
	}
	now := s.sealed.Now()
	size := func(listedIssuer) int64 { return 0 } // the service itself has no limit
	return bucket.Gather(bucket.NewBudget(ctx), keys, size, func(key string) (listedIssuer, error) {
		organization, name := o.at(key)
		known, ok := s.issuers.known.Get(key)
		if !ok || now.Sub(known.read) >= issuerFor {
			t, err := o.any(ctx, organization, name)
			if err != nil {
				return listedIssuer{}, err
			}
			known = issuerOfTrust{sha256.Sum256([]byte(t.Issuer)), now} // of a damaged one, that of no issuer
			s.issuers.known.Add(key, known)
		}
		return listedIssuer{deployments.TrustName{Organization: organization, Name: name}, known.issuer}, nil
	})
}

// TrustsAt returns those of some trusts of a store that are there, not damaged, and of an issuer, in the same order.
func TrustsAt(
	ctx context.Context, s *Store, names []deployments.TrustName, issuer string,
) ([]deployments.Trust, error) {
	o, keys := s.trusts(), make([]string, len(names))
	for i, n := range names {
		keys[i] = o.key(n.Organization, n.Name)
	}
	return bucket.Gather(bucket.NewBudget(ctx), keys, o.size, func(key string) (deployments.Trust, error) {
		organization, name := o.at(key)
		t, err := o.any(ctx, organization, name)
		if err == nil && (t.Issuer != issuer || t.Damaged != "") {
			err = errElsewhere
		}
		return t, err
	})
}

// forget has those who ask for the issuer of a trust from now on read it.
func (i *trustIssuers) forget(organization, key string) {
	i.known.Remove(key)
	i.reading.Forget(organization)
	i.reading.Forget(deployments.AnyOrganization)
}
