package activities

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

func TestForceReconcilesWhatHasNotChangedIfItsProviderConverges(t *testing.T) {
	for name, c := range map[string]struct {
		declares string
		force    bool
		change   engine.ChangeKind
	}{
		"convergent, with force":    {`"reconcile"`, true, engine.ChangeUpdate},
		"convergent, without force": {`"reconcile"`, false, engine.ChangeNone},
		"another, with force":       {`"read"`, true, engine.ChangeNone},
	} {
		h := newHouse(t)
		h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy, Force: c.force})
		declared := []byte(`{"` + thingType + `": ` + c.declares + `}`)
		if err := os.WriteFile(filepath.Join(h.world, declaring), declared, 0o600); err != nil {
			t.Fatal(err)
		}
		inputs := texts("name", "n", "size", "1")
		created, err := h.step(h.create(inputs), 1)
		if err != nil {
			t.Fatal(err)
		}
		out, err := call[deployments.PlanOutput](h, h.acts.PlanResources, deployments.PlanInput{
			Update: h.update, Base: h.base, Plans: []engine.Plan{{
				Op: 2, URN: thingURN, Old: h.thing("n", h.values(*created.Inputs), h.values(created.Outputs)),
				Provider: h.toy(), Seed: seedOf(thingURN),
				Goal: engine.Registration{Type: thingType, Name: "thing", Custom: true, Inputs: h.bag(inputs)},
			}},
		})
		if err != nil || len(out.Plans) != 1 || out.Plans[0].Error != "" || out.Plans[0].Diff.Change != c.change {
			t.Errorf("%s: %+v, %v", name, out.Plans, err)
		}
	}
}
