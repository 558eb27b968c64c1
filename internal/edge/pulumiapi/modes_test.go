package pulumiapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

func TestEachRouteIsRefusedInTheModesThatItsMethodNames(t *testing.T) {
	for _, kind := range []deployments.ModeKind{deployments.ModeMaintenance, deployments.ModeReadOnly} {
		b := newBench(t)
		m := deployments.Mode{Kind: kind, Reason: "Temporal is upgraded", Until: time.Now().Add(time.Hour)}
		if err := b.store.Organizations.SetMode(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		for _, r := range guarded(t) {
			if r.by == byLease {
				continue
			}
			got, said, _ := b.do(r.method, sampled(r), "token admin", strings.NewReader("{}"))
			refused := got == http.StatusServiceUnavailable && strings.Contains(said, "Temporal is upgraded")
			work := r.does.Work()
			if r.onlyWrites {
				work = deployments.WorkWrites
			}
			if want := m.Refuse(work, time.Now()) != nil; refused != want {
				t.Errorf("%s %s in the mode %s is answered %d: %s", r.method, r.path, kind, got, said)
			}
		}
	}
}

func TestInMaintenanceNothingBeginsAndWhatHasBegunGoesOn(t *testing.T) {
	b := newBench(t)
	const updates = "/api/stacks/acme/shop/dev/"
	if err := b.store.Organizations.SetMode(t.Context(), deployments.Mode{Kind: deployments.ModeReadOnly, Reason: "why",
		Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range updateKinds {
		said := b.want(http.StatusServiceUnavailable, http.MethodPost, updates+kind, "token admin", "{}")
		if !strings.Contains(said, "read-only until") {
			t.Errorf("%s is refused with %s", kind, said)
		}
	}
	for _, r := range guarded(t) { // what a running update does by its own token is refused for the token alone
		if r.by != byLease {
			continue
		}
		if said := b.want(http.StatusUnauthorized, r.method, sampled(r), "update-token forged", "{}"); strings.Contains(
			said, "read-only") {
			t.Errorf("%s %s: %s", r.method, r.path, said)
		}
	}
	b.want(http.StatusOK, http.MethodGet, updates+"updates", "token admin", "")
}
