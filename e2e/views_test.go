package e2e

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// fleet is a program of a Fleet with settings, each of which is a view.
func fleet(settings string) string {
	return steps("{register: f, type: fake:index:Fleet, properties: {name: f, settings: " + settings + "}}")
}

// views lists the views that the state has, as "NAME=VALUE", and checks that each stands below its owner.
func (s *scene) views(t *testing.T) string {
	t.Helper()
	var all []string
	owner := strings.Replace(urn(t, "f"), "Named", "Fleet", 1)
	for _, r := range s.exported(t).Resources {
		if r.ViewOf == "" {
			continue
		}
		value, _ := r.Outputs["value"].(string)
		all = append(all, r.URN.Name()+"="+value)
		if string(r.ViewOf) != owner || string(r.Parent) != owner || r.Custom || r.ID != "" {
			t.Errorf("the view is %+v", r)
		}
	}
	return strings.Join(all, " ")
}

// hasViews compares the views of the state.
func (s *scene) hasViews(t *testing.T, want string) {
	t.Helper()
	if got := s.views(t); got != want {
		t.Errorf("the views are %q, not %q", got, want)
	}
}

func TestAProviderPublishesTheViewsOfWhatItManages(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, fleet("{a: one, b: two}"))
	s.hasViews(t, "f-a=one f-b=two")
	s.update(t, "up").expect(t, map[string]int{"same": 4})

	// Changed, gone, new, and replaced within its owner.
	s.write(t, "scenario.yaml", fleet("{a: '!other', c: three}"))
	changes := map[string]int{"update": 1, "delete": 1, "create": 1, "replace": 1}
	s.update(t, "preview").expect(t, changes)
	s.update(t, "up").expect(t, changes)
	s.hasViews(t, "f-a=!other f-c=three")

	// What was changed outside is found by the refresh of the owner.
	found, err := s.cloud.Objects(t.Context(), "fleet")
	must(t, err)
	found[0].Properties["settings"] = map[string]any{"c": "drifted"}
	must(t, s.cloud.Put(t.Context(), found[0]))
	s.update(t, "refresh").expect(t, map[string]int{"update": 2, "delete": 1})
	s.hasViews(t, "f-c=drifted")

	// A view that fails fails the update; the others are as they are.
	s.write(t, "scenario.yaml", fleet("{broken: one, c: four}"))
	s.update(t, "up").expect(t, map[string]int{"update": 2, "create": 1})
	s.write(t, "scenario.yaml", fleet("{broken: two, c: five}"))
	s.fails(t, 1, []string{"the part is broken"}, "up", "--yes", "--skip-preview")
	s.hasViews(t, "f-c=five f-broken=one")
	s.update(t, "destroy").expect(t, map[string]int{"delete": 4})
}

// TestViewsAreThoseOfTheAnswerThatCountsWhoeverIsKilled kills the provider and the service while the cloud holds the
// update of an owner: views are published again, and recorded once.
func TestViewsAreThoseOfTheAnswerThatCountsWhoeverIsKilled(t *testing.T) {
	soaktest.Only(t)
	for _, victim := range []string{"the service", "the provider"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			s := &scene{stage: newStage(t, homeFor(t, victim))}
			s.write(t, "scenario.yaml", fleet("{a: one, b: two}"))
			s.update(t, "up")
			gate, err := s.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Update, Object: "f",
				At: fakecloud.Before, Times: 1})
			must(t, err)
			s.write(t, "scenario.yaml", fleet("{a: other, c: three}"))
			up := s.start(t, "up", "--yes", "--skip-preview")
			must(t, gate.Wait(waiting(t)))
			killed[victim](t, s.stage, up)
			must(t, gate.WaitEmpty(waiting(t)))
			must(t, gate.Open(t.Context()))
			s.attached(t).mustEnd(t, 0)
			up.mustEnd(t, 0)
			s.hasViews(t, "f-a=other f-c=three")
			s.update(t, "up").expect(t, map[string]int{"same": 4})
		})
	}
}
