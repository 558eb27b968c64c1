package grpcapi_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

var sequences = flag.Int("sequences", 300, "how many sequences of calls to play, each of another seed")

// calls is how many calls a sequence has.
const calls = 40

// TestNobodyOpensWhatNoAdminOfItAdmittedThemTo plays sequences of calls by the holders of tokens of two organizations
// and of the service's admin, on the store and on the model, and compares what each token may do. Each text counts as
// known to everybody.
func TestNobodyOpensWhatNoAdminOfItAdmittedThemTo(t *testing.T) {
	made := 0
	for seed := range *sequences {
		w := newWorld(t, uint64(seed)) //nolint:gosec // not negative
		for i := range calls {
			w.step()
			w.compare()
			if i%10 == 9 {
				w.compareLists()
			}
			if t.Failed() {
				t.Fatalf("seed %d, after\n%s", seed, strings.Join(w.said, "\n"))
			}
		}
		made += len(w.said)
	}
	if made < *sequences*calls/4 {
		t.Errorf("of %d calls, %d were accepted: too few to show anything", *sequences*calls, made)
	}
}

// world is a store, and the model of it.
type world struct {
	t       *testing.T
	random  *rand.Rand
	store   *statestore.Store
	service grpcapi.Service
	now     time.Time
	tokens  []*theToken
	members []*theMember
	teams   []*theTeam
	trusts  []*theTrust
	said    []string // the calls that were accepted
	asked   int
}

// newWorld has an admin of all, and one of each organization.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1e9, 0)} //nolint:gosec // to be repeated
	store, err := statestore.New(&bucket.Memory{}, statestore.Options{Master: make([]byte, 32),
		Now: func() time.Time {
			w.now = w.now.Add(time.Second)
			return w.now
		}})
	if err != nil {
		t.Fatal(err)
	}
	w.store, w.service = store, service.New(nil, store, service.Readers{})
	all := stackSet{}
	for _, s := range universe {
		all[s] = true
	}
	for _, organization := range append([]string{"*"}, organizations...) {
		g := deployments.Grant{Role: deployments.RoleAdmin, Organization: organization}
		x := &theToken{name: "first" + strings.Trim(organization, "*"), grant: &g, within: organization, admitted: all}
		if x.text, err = store.Access.CreateToken(t.Context(), deployments.Token{Name: x.name, Grant: &g}); err != nil {
			t.Fatal(err)
		}
		w.tokens = append(w.tokens, x)
	}
	return w
}

// pick returns one of a list.
func pick[T any](w *world, of ...T) T { return of[w.random.IntN(len(of))] }

// compare holds the store against the model.
func (w *world) compare() {
	export, _ := grpcapi.RuleOf(api.Stacks_Export_FullMethodName)
	for _, x := range w.tokens {
		caller, err := w.store.Access.Authenticate(w.t.Context(), x.text)
		for _, s := range universe {
			opens := err == nil && export.Allow(caller, true, s) == nil
			if opens && !x.admitted[s] {
				w.t.Errorf("the token %s reads the secrets of %s, and nobody who administers it has given that", x.name, s)
			}
			if opens != x.may(deployments.RoleDeployer, s) {
				w.t.Errorf("the token %s reads the secrets of %s: %v", x.name, s, opens)
			}
			for _, role := range everyRole {
				if may := err == nil && caller.May(role, s); may != x.may(role, s) {
					w.t.Errorf("the token %s is a %s's on %s: %v", x.name, role, s, may)
				}
			}
		}
	}
}

// compareLists holds that the admin of an organization sees all tokens of it, and nobody one of another.
func (w *world) compareLists() {
	for _, admin := range w.tokens {
		caller, err := w.store.Access.Authenticate(w.t.Context(), admin.text)
		if err != nil || !caller.Has(deployments.RoleAdmin) {
			continue
		}
		list, err := grpcapi.Administered{Service: w.service, Caller: caller}.ListTokens(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		for _, x := range w.tokens {
			seen := slices.ContainsFunc(list, func(t deployments.Token) bool { return t.Name == x.name })
			if seen && x.gone {
				w.t.Errorf("%s sees the token %s, which was removed", admin.name, x.name)
			}
			if !seen && !x.gone && admin.whole(x.within) {
				w.t.Errorf("%s does not see the token %s of %s", admin.name, x.name, x.within)
			}
			if seen && !admin.over(x) {
				w.t.Errorf("%s sees the token %s of %s", admin.name, x.name, x.within)
			}
		}
	}
}

// over reports whether a token may do nothing but what the holder of another one administers.
func (x *theToken) over(other *theToken) bool {
	return !slices.ContainsFunc(universe, func(s deployments.StackName) bool {
		return other.may(deployments.RoleViewer, s) && !x.may(deployments.RoleAdmin, s)
	})
}

// name returns a new name.
func (w *world) name() string {
	w.asked++
	return fmt.Sprint("t", w.asked)
}
