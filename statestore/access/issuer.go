package access

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/flight"
	"github.com/deployctl/deployctl/internal/values/workload"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// issuerKeys has the keys that sign workload tokens, sealed: all processes of the service share them.
const issuerKeys = "service/issuer-keys"

// keysKnownWithin is how old the keys may be that a process goes by: all publish a new key long before it signs.
const keysKnownWithin = time.Minute

// keysCountWithin is how old they may be while the store cannot be reached.
const keysCountWithin = time.Hour

// Issuer is the service as an issuer of workload tokens, and what a process knows of its keys.
type Issuer struct {
	sealed  *bucket.Sealed
	address string

	reading flight.Group[workload.Keys] // of the only object
	mu      sync.Mutex
	keys    workload.Keys
	read    time.Time // zero: never
}

// SetAddress says under which address the service is an issuer of workload tokens. It is called before the store is
// used; without it the service is none.
func (i *Issuer) SetAddress(address string) { i.address = address }

// Address returns that address; "" if the service is no issuer.
func (i *Issuer) Address() string { return i.address }

// Keys returns the keys that sign workload tokens, with those that did and will, as they were a minute ago at the
// earliest. Whoever asks makes the next key when it is time. All who ask at once wait for one read.
func (i *Issuer) Keys(ctx context.Context) (workload.Keys, error) {
	now := i.sealed.Now()
	if keys := i.known(now); keys != nil {
		return keys, nil
	}
	keys, err := i.reading.Do(ctx, "", "reading keys", func(ctx context.Context) (workload.Keys, error) {
		if keys := i.known(now); keys != nil {
			return keys, nil
		}
		keys, err := i.readKeys(ctx)
		return i.learn(keys, err, now)
	})
	if ctx.Err() != nil {
		return nil, bucket.Failed(ctx.Err(), "read "+issuerKeys)
	}
	return keys, err
}

// learn keeps keys that were read at a time. While the store cannot be reached, those that are known count on.
func (i *Issuer) learn(keys workload.Keys, err error, now time.Time) (workload.Keys, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case err == nil:
		i.keys, i.read = keys, now
	case deployments.CodeOf(err) == deployments.CodeUnavailable && i.keys != nil && now.Sub(i.read) < keysCountWithin:
		return i.keys, nil
	}
	return keys, err
}

// known returns the keys if they were read lately, else nil.
func (i *Issuer) known(now time.Time) workload.Keys {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.read.IsZero() || now.Sub(i.read) >= keysKnownWithin {
		return nil
	}
	return i.keys
}

// readKeys reads the keys, and stores them with the next one if it is time for it. Of processes that do so at
// once the first counts.
func (i *Issuer) readKeys(ctx context.Context) (workload.Keys, error) {
	for {
		var ring workload.Ring
		tag, err := i.sealed.GetJSON(ctx, issuerKeys, &ring)
		absent := errors.Is(err, bucket.ErrAbsent)
		if err != nil && !absent {
			return nil, err
		}
		now := i.sealed.Now().UTC()
		if !ring.Outdated(now) {
			return opened(ring)
		}
		if ring, err = ring.Renewed(now); err != nil {
			return nil, deployments.Errorf(deployments.CodeInternal, "make a key of the issuer: %w", err)
		}
		err = i.sealed.PutJSON(ctx, issuerKeys, ring, bucket.Condition{Tag: tag, Absent: absent})
		if err == nil {
			return opened(ring)
		}
		if !errors.Is(err, bucket.ErrChanged) {
			return nil, err
		}
	}
}

func opened(ring workload.Ring) (workload.Keys, error) {
	keys, err := ring.Open()
	if err != nil {
		return nil, bucket.Damaged(issuerKeys, err)
	}
	return keys, nil
}

// needsIssuer reports, as CodeInvalid, that a profile has clouds and the service is no issuer.
func (s *Store) needsIssuer(c deployments.Clouds) error {
	if c.Empty() || s.Issuer.address != "" {
		return nil
	}
	return deployments.Errorf(deployments.CodeInvalid, "the service is no issuer of tokens, so no cloud can give updates "+
		"credentials for them: have an operator give serve and the workers the address at which clouds reach the service "+
		"(the setting issuer), or set credentials as variables")
}
