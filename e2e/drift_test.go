package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// planned are the names of the resources that a preview would change.
func (s *scene) planned(t *testing.T, args ...string) (names []string) {
	t.Helper()
	for line := range strings.Lines(s.must(t, append(args, "--json")...)) {
		var e apitype.EngineEvent
		must(t, json.Unmarshal([]byte(line), &e))
		if pre := e.ResourcePreEvent; pre != nil && pre.Metadata.Op != apitype.OpSame &&
			pre.Metadata.Op != apitype.OpRefresh {
			names = append(names, pre.Metadata.URN[strings.LastIndex(pre.Metadata.URN, "::")+2:])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// document is an input whose keys the provider gives in another order.
const document = `{"a": 1, "b": [2]}`

// TestADriftCheckFindsWhatARefreshFindsAndAnUpdateRepairs changes a cloud from outside at random, and compares what a
// preview of a refresh, a preview of an update with a refresh, a drift check and its remediation make of it. With each
// read the provider has another record of its own and gives the keys of JSON in another order, which is no drift.
func TestADriftCheckFindsWhatARefreshFindsAndAnUpdateRepairs(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	const resources = 8
	var lines []string
	for i := range resources {
		options := ""
		if i == 0 {
			options = ", options: {ignoreChanges: [size]}"
		}
		lines = append(lines, fmt.Sprintf("{register: r%d, type: fake:index:Named, "+
			"properties: {name: r%d, settings: {a: b}, document: '%s'}%s}", i, i, document, options))
	}
	s := newScene(t, steps(lines...))
	s.must(t, "config", "set", "fake:habits", "true")
	s.update(t, "up")
	s.must(t, "schedule", "new", "drift", "--name", "look", "--every", "24h")
	s.must(t, "schedule", "new", "drift", "--name", "heal", "--every", "24h", "--remediate", "--paused")
	random := rand.New(rand.NewPCG(7, 3))
	for range 4 {
		objects, err := s.cloud.Objects(t.Context(), "named")
		must(t, err)
		want := []string{}
		for _, o := range objects {
			drifts := true
			switch random.IntN(6) {
			case 0:
				o.Properties["size"] = 2 + random.IntN(5)
				drifts = o.Name != "r0"
			case 1:
				o.Properties["settings"] = map[string]any{"a": "c"}
			case 2:
				o.Properties["settings"] = map[string]any{"a": "b", "more": random.IntN(9)}
			case 3:
				must(t, s.cloud.Remove(t.Context(), o.Kind, o.ID))
				want = append(want, o.Name)
				continue
			case 4:
				o.Properties["document"] = `{"b": 2}`
			default:
				continue
			}
			must(t, s.cloud.Put(t.Context(), o))
			if drifts {
				want = append(want, o.Name)
			}
		}
		slices.Sort(want)
		if planned := s.planned(t, "preview", "--refresh"); !slices.Equal(planned, want) {
			t.Errorf("an update with a refresh would change %v, and not %v", planned, want)
		}
		found := projection.NewState()
		for line := range strings.Lines(s.must(t, "refresh", "--preview-only", "--json")) {
			var e apitype.EngineEvent
			must(t, json.Unmarshal([]byte(line), &e))
			found.Apply(deployments.WatchEvent{Event: &e})
		}
		s.succeeds(t, "look", len(want), 1)
		reported := told[deployments.Drift](t, s.project, "drift", "status").Resources
		for who, drifted := range map[string][]deployments.DriftedResource{"a refresh": found.Drift(), "a check": reported} {
			names := []string{}
			for _, d := range drifted {
				names = append(names, d.URN[strings.LastIndex(d.URN, "::")+2:])
			}
			if slices.Sort(names); !slices.Equal(names, want) {
				t.Errorf("%s finds %v, and not %v", who, names, want)
			}
		}
		s.seen = s.effects(t)
		s.now(t, "heal")
		repaired := []string{}
		for _, done := range s.done(t) {
			_, name, _ := strings.Cut(done, " ")
			repaired = append(repaired, name)
		}
		if slices.Sort(repaired); !slices.Equal(slices.Compact(repaired), want) {
			t.Errorf("the remediation changes %v, and not %v", repaired, want)
		}
		s.succeeds(t, "look", 0, 1)
	}
	s.noDuplicates(t)
}
