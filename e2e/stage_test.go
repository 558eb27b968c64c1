package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// layers is a program of three layers of one resource of each kind; each depends on all of the layer before.
const layers = `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: named-1, type: fake:index:Named, properties: {name: "one"}}
  - {register: auto-1, type: fake:index:Auto}
  - {register: tagged-1, type: fake:index:Tagged}
  - {register: server-1, type: fake:index:Server}
  - {register: named-2, type: fake:index:Named,
     properties: {name: "two", links: ["${named-1.arn}", "${auto-1.arn}", "${tagged-1.arn}", "${server-1.arn}"]}}
  - {register: auto-2, type: fake:index:Auto,
     properties: {links: ["${named-1.arn}", "${auto-1.arn}", "${tagged-1.arn}", "${server-1.arn}"]}}
  - {register: tagged-2, type: fake:index:Tagged,
     properties: {links: ["${named-1.arn}", "${auto-1.arn}", "${tagged-1.arn}", "${server-1.arn}"]}}
  - {register: server-2, type: fake:index:Server,
     properties: {links: ["${named-1.arn}", "${auto-1.arn}", "${tagged-1.arn}", "${server-1.arn}"]}}
  - {register: named-3, type: fake:index:Named,
     properties: {name: "three", links: ["${named-2.arn}", "${auto-2.arn}", "${tagged-2.arn}", "${server-2.arn}"]}}
  - {register: auto-3, type: fake:index:Auto,
     properties: {links: ["${named-2.arn}", "${auto-2.arn}", "${tagged-2.arn}", "${server-2.arn}"]}}
  - {register: tagged-3, type: fake:index:Tagged,
     properties: {links: ["${named-2.arn}", "${auto-2.arn}", "${tagged-2.arn}", "${server-2.arn}"]}}
  - {register: server-3, type: fake:index:Server,
     properties: {links: ["${named-2.arn}", "${auto-2.arn}", "${tagged-2.arn}", "${server-2.arn}"]}}
outputs:
  arn: ${named-3.arn}
`

// layersCreates is how many resources of layers have an effect in the cloud.
const layersCreates = 12

// findable tells the service how a lost create of the kinds is found again.
const findable = `{"fake:index:Named": {"read": "property:name"}, "fake:index:Auto": {"read": "property:name"}}`

// stage is a service, a cloud and the program of layers, all of the test's own.
type stage struct {
	*project
	cloud *fakecloud.Process
}

func newStage(t *testing.T, h *home, env ...string) *stage {
	t.Helper()
	path, err := exec.LookPath("fakecloud")
	must(t, err)
	cloud, err := fakecloud.Launch(path)
	must(t, err)
	t.Cleanup(func() { must(t, cloud.Stop()) })
	p := h.in(t.TempDir(), append(env, "FAKECLOUD_ENDPOINT="+cloud.URL())...)
	p.write(t, "Pulumi.yaml", "name: "+projectName(t)+"\nruntime: scenario\n")
	p.write(t, "scenario.yaml", layers)
	p.write(t, "Pulumi.dev.yaml", "config:\n  deployctl:settle: '"+findable+"'\n")
	p.must(t, "stack", "init", "dev")
	return &stage{p, cloud}
}

// waiting is a context that ends a test that hangs.
func waiting(t *testing.T) context.Context {
	t.Helper()
	return waittest.Context(t)
}

// gate holds the create of a resource at a moment.
func (s *stage) gate(t *testing.T, object string, at fakecloud.Moment) fakecloud.Gate {
	t.Helper()
	g, err := s.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Create, Object: object, At: at,
		Times: 1})
	must(t, err)
	return g
}

// objects is what stands in the cloud, as "KIND OWNER links=N", without what chance decides.
func (s *stage) objects(t *testing.T) (all []string) {
	t.Helper()
	found, err := s.cloud.Objects(t.Context(), "")
	must(t, err)
	for _, o := range found {
		links, _ := o.Properties["links"].([]any)
		all = append(all, fmt.Sprintf("%s %s links=%d", o.Kind, o.Owner[strings.LastIndex(o.Owner, "::")+2:],
			len(links)))
	}
	slices.Sort(all)
	return all
}

// undisturbed is what objects gives after an update that nothing disturbs.
func undisturbed() (all []string) {
	for i := range 3 {
		for _, kind := range []string{"auto", "named", "server", "tagged"} {
			all = append(all, fmt.Sprintf("%s %s-%d links=%d", kind, kind, i+1, min(i, 1)*4))
		}
	}
	slices.Sort(all)
	return all
}

// noDuplicates must hold at any quiet moment, whatever happened.
func (s *stage) noDuplicates(t *testing.T) {
	t.Helper()
	double, err := s.cloud.Duplicates(t.Context())
	must(t, err)
	if len(double) > 0 {
		t.Errorf("created twice: %v", double)
	}
}

// asIfNothingHappened compares cloud and state with those of an undisturbed run, and makes sure that another update
// has nothing to do.
func (s *stage) asIfNothingHappened(t *testing.T) {
	t.Helper()
	s.noDuplicates(t)
	if found := s.objects(t); !slices.Equal(found, undisturbed()) {
		t.Errorf("the cloud holds\n%s\nnot\n%s", strings.Join(found, "\n"), strings.Join(undisturbed(), "\n"))
	}
	s.stateAgrees(t)
	s.update(t, "up").expect(t, map[string]int{"same": layersCreates + 1})
	s.noDuplicates(t)
}

// stateAgrees compares the stack's state with the cloud: the same ids, nothing pending, dependencies before dependents.
func (s *stage) stateAgrees(t *testing.T) {
	t.Helper()
	state := s.exported(t)
	if len(state.PendingOperations) > 0 {
		t.Errorf("there are %d pending operations", len(state.PendingOperations))
	}
	found, err := s.cloud.Objects(t.Context(), "")
	must(t, err)
	ids, seen := map[string]string{}, map[string]bool{}
	for _, o := range found {
		ids[o.Owner] = o.ID
	}
	for _, r := range state.Resources {
		seen[string(r.URN)] = true
		for _, on := range r.Dependencies {
			if !seen[string(on)] {
				t.Errorf("%s comes before %s", r.URN, on)
			}
		}
		if strings.HasPrefix(string(r.Type), "fake:") && ids[string(r.URN)] != string(r.ID) {
			t.Errorf("%s is %q in the state and %q in the cloud", r.URN, r.ID, ids[string(r.URN)])
		}
	}
	if len(state.Resources) != len(ids)+2 {
		t.Errorf("there are %d resources for %d objects", len(state.Resources), len(ids))
	}
}

// idOf is the id of the cloud's object of a resource, or "".
func (s *stage) idOf(t *testing.T, name string) string {
	t.Helper()
	found, err := s.cloud.Objects(t.Context(), "")
	must(t, err)
	i := slices.IndexFunc(found, func(o fakecloud.Object) bool { return strings.HasSuffix(o.Owner, "::"+name) })
	if i < 0 {
		return ""
	}
	return found[i].ID
}

// sortedState is a state by URN, as text, without times.
func sortedState(d apitype.DeploymentV3) (all []string) {
	slices.SortStableFunc(d.Resources, func(a, b apitype.ResourceV3) int { return cmp.Compare(a.URN, b.URN) })
	for _, r := range d.Resources {
		r.Created, r.Modified = nil, nil
		text, _ := json.Marshal(r) // it came from JSON
		all = append(all, string(text))
	}
	return all
}
