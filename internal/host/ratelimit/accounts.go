// Package ratelimit bounds the calls that a worker makes: per account of a cloud, and per update.
//
// A Limiter adapts to what its account accepts: calls are unlimited until the account throttles many of them. From then
// on they have a rate, which falls by a factor when calls are throttled and rises by a smaller one while none is. The
// token bucket is not that of golang.org/x/time/rate because calls that already wait must notice a new rate, and
// because scheduled calls go into debt when prompt calls need their tokens.
package ratelimit

import (
	"crypto/rand"
	"maps"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Accounts holds the limiters of the accounts that a worker calls. Each update has provider processes of its own, but
// the rate limit of an account is common to all of them. It is safe for concurrent use.
type Accounts struct {
	key []byte
	mu  sync.Mutex
	all map[string]*Limiter
}

// NewAccounts returns an empty set of limiters.
func NewAccounts() *Accounts {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return &Accounts{key: key, all: map[string]*Limiter{}}
}

// Limiter returns the limiter of the account that providers of a package call with a configuration.
func (a *Accounts) Limiter(pkg string, config resource.PropertyMap) (*Limiter, error) {
	digest, err := bags.Digest(a.key, config)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name := pkg + "#" + digest
	l, ok := a.all[name]
	if !ok {
		a.evict(time.Now())
		l = newLimiter()
		a.all[name] = l
	}
	return l, nil
}

// evict drops the limiters that have learnt nothing that still holds. Without it, each change of credentials would
// leave one behind.
func (a *Accounts) evict(now time.Time) {
	maps.DeleteFunc(a.all, func(_ string, l *Limiter) bool { return l.idle(now) })
}
