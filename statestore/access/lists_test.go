package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// large is a grant with the longest globs that there can be.
func large(organization string) *deployments.Grant {
	g := &deployments.Grant{Role: deployments.RoleViewer, Organization: organization}
	for range deployments.MaxStackGlobs {
		g.Stacks = append(g.Stacks, strings.Repeat("p", deployments.MaxNameLength)+"/"+
			strings.Repeat("s", deployments.MaxNameLength))
	}
	return g
}

// readings counts how often objects are read.
type readings struct {
	*bucket.Memory
	of     string
	number atomic.Int64
}

func (r *readings) Get(ctx context.Context, key string) (bucket.Object, error) {
	if strings.HasPrefix(key, r.of) {
		r.number.Add(1)
	}
	return r.Memory.Get(ctx, key)
}

// busyMemory is the context of a call for which there is no memory: what needs none of it succeeds.
func busyMemory(t *testing.T) context.Context {
	t.Helper()
	pool := mempool.New(mempool.Step)
	other := pool.Claim("other", nil)
	done(t, other.Take(t.Context(), mempool.Step, time.Second))
	claim := pool.Claim("acme", nil)
	t.Cleanup(claim.Release)
	return mempool.With(t.Context(), claim, time.Millisecond)
}

func TestAListThatACallerAsksForHasALimit(t *testing.T) {
	asked := bucket.NewBudget(mempool.With(t.Context(), mempool.New(4*bucket.ListMemory).Claim("acme", nil), time.Second))
	done(t, asked.Keep(bucket.ListMemory))
	if err := asked.Keep(1); !errors.Is(err, deployments.ErrTooLarge) {
		t.Errorf("more than the limit: %v", err)
	}
	own := bucket.NewBudget(t.Context())
	done(t, own.Keep(bucket.ListMemory), own.Keep(bucket.ListMemory))
}

func TestEachTeamIsReadOnceHoweverManyMembersItHas(t *testing.T) {
	objects := &readings{Memory: &bucket.Memory{}, of: "teams/"}
	s, err := over(objects, nil)
	done(t, err)
	for n := range 10 {
		done(t, s.GrantTeam(t.Context(), fmt.Sprint("t", n), *large("acme")))
		for m := range 10 {
			done(t, s.JoinTeam(t.Context(), "acme", fmt.Sprint("t", n), fmt.Sprint("m", m)))
		}
	}
	objects.number.Store(0)
	list, err := s.MembersOf(busyMemory(t), "acme")
	if n := objects.number.Load(); err != nil || n != 10 || len(list) != 10 || len(list[9].Teams) != 10 {
		t.Errorf("teams were read %d times for %d members, %v", n, len(list), err)
	}
}

// caller is one of an organization, known by a hash.
func caller(organization string, n int, grants ...deployments.Grant) ([sha256.Size]byte, knownCaller) {
	k := knownCaller{within: organization, read: time.Now()}
	k.Grants = [][]deployments.Grant{grants}
	return sha256.Sum256([]byte(fmt.Sprint(organization, n))), k
}

func TestWhatAnOrganizationChangesIsForgottenOfItsOwnCallersAlone(t *testing.T) {
	for _, c := range []struct {
		changed     string
		acme, every bool // who is still known
	}{{"evil", true, true}, {"acme", false, true}, {deployments.AnyOrganization, false, false}} {
		known := &callers{}
		acme, one := caller("acme", 1)
		every, all := caller(deployments.AnyOrganization, 1)
		since := known.changes()
		known.keep(acme, one, since)
		known.keep(every, all, since)
		known.forget(c.changed)
		for round := range 2 {
			_, isOne := known.find(acme, time.Now())
			_, isAll := known.find(every, time.Now())
			if isOne != c.acme || isAll != c.every {
				t.Errorf("%d: after a change in %s: %v, %v", round, c.changed, isOne, isAll)
			}
			known.keep(acme, one, since) // they were read before the change
			known.keep(every, all, since)
		}
		now := known.changes()
		known.keep(acme, one, now)
		if _, ok := known.find(acme, time.Now()); !ok {
			t.Errorf("what is read after a change in %s is not known", c.changed)
		}
	}
	known := &callers{}
	acme, one := caller("acme", 1)
	since := known.changes()
	known.forget("acme")
	for n := range 2 * maxCallers { // more than are remembered
		known.forget(fmt.Sprint("evil-", n))
	}
	if known.keep(acme, one, since); len(known.known) > 0 || len(known.changedIn) > maxCallers {
		t.Errorf("what was read before a change is known; changes of %d organizations are remembered", len(known.changedIn))
	}
}

func TestTheOrganizationWithTheLargestCallersMakesRoomForOthers(t *testing.T) {
	known := &callers{}
	acme, one := caller("acme", 1)
	known.keep(acme, one, 0)
	huge := make([]deployments.Grant, 21)
	for i := range huge {
		huge[i] = *large("evil")
	}
	for n := range 2 * callerMemory / int(20*large("evil").Size()) {
		hash, k := caller("evil", n, huge...)
		if known.keep(hash, k, 0); known.total > callerMemory {
			t.Fatalf("%d callers take %d MiB", len(known.known), known.total>>20)
		}
	}
	for n := range 2 * maxCallers {
		hash, k := caller("many", n)
		if known.keep(hash, k, 0); len(known.known) > maxCallers {
			t.Fatalf("%d callers are known", len(known.known))
		}
	}
	if _, ok := known.find(acme, time.Now()); !ok {
		t.Error("the caller of another organization is forgotten")
	}
	sum := int64(0)
	for _, k := range known.known {
		sum += k.Size()
	}
	if known.total != sum {
		t.Errorf("%d bytes are counted, and %d known", known.total, sum)
	}
}
