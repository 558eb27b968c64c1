package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// ring is three resources that need each other.
const ring = `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: one, type: fake:index:Named, properties: {name: one}}
  - {register: two, type: fake:index:Auto}
  - {register: three, type: fake:index:Auto}
  - {register: one-knows-two, type: "deployctl:index:Binding",
     properties: {resource: "${one.urn}", inputs: {links: ["${two.arn}"]}}}
  - {register: two-knows-three, type: "deployctl:index:Binding",
     properties: {resource: "${two.urn}", inputs: {links: ["${three.arn}"]}}}
  - {register: three-knows-one, type: "deployctl:index:Binding",
     properties: {resource: "${three.urn}", inputs: {links: ["${one.arn}"]}}}
`

// TestWhateverIsKilledWhatIsBoundIsReconciled kills each victim while one of the ring is created, and while one is
// reconciled again, before the effect and after it.
func TestWhateverIsKilledWhatIsBoundIsReconciled(t *testing.T) {
	for _, victim := range slices.Sorted(maps.Keys(killed)) {
		for _, op := range []fakecloud.Op{fakecloud.Create, fakecloud.Update} {
			for _, at := range []fakecloud.Moment{fakecloud.Before, fakecloud.After} {
				t.Run(fmt.Sprintf("%s %s the effect of %s", victim, at, op), func(t *testing.T) {
					if victim != "the provider" || op != fakecloud.Update {
						soaktest.Only(t)
					}
					t.Parallel()
					s := newStage(t, homeFor(t, victim))
					s.write(t, "scenario.yaml", ring)
					gate, err := s.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: op, Object: "two", At: at, Times: 1})
					must(t, err)
					up := s.start(t, "up", "--yes", "--skip-preview", "--on-unknown", "fail")
					must(t, gate.Wait(waiting(t)))
					killed[victim](t, s, up)
					if victim == "the service" || victim == "the provider" {
						must(t, gate.WaitEmpty(waiting(t)))
					}
					must(t, gate.Open(t.Context()))
					s.attached(t).mustEnd(t, 0)
					if victim != "the client" {
						up.mustEnd(t, 0)
					}
					s.noDuplicates(t)
					want := []string{"auto three links=1", "auto two links=1", "named one links=1"}
					if found := s.objects(t); !slices.Equal(found, want) {
						t.Errorf("the cloud holds %q", found)
					}
					s.update(t, "up").expect(t, map[string]int{"same": 7}) // with the stack and the bindings
				})
			}
		}
	}
}
