package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestATargetOrAReplacementThatNamesNothingFails(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	s.write(t, "scenario.yaml", "steps: []\n") // so that whatever goes on deletes
	none := "could not be found in the stack"
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"up", "--yes", "--skip-preview", "--target", urn(t, "nope")}, none},
		{[]string{"up", "--yes", "--skip-preview", "--replace", urn(t, "nope")}, none},
		{[]string{"preview", "--replace", urn(t, "nope")}, none},
		{[]string{"destroy", "--yes", "--skip-preview", "--target", urn(t, "nope")}, none},
		{[]string{"refresh", "--yes", "--skip-preview", "--target", urn(t, "nope")}, none},
		{[]string{"up", "--yes", "--target", "aa"}, "is not a URN"},
		{[]string{"destroy", "--yes", "--target", "aa"}, "is not a URN"},
	} {
		s.fails(t, 2, []string{c.says}, c.args...)
	}
	if r := s.run(t, "destroy", "--yes", "--skip-preview", "--target", "**::nope*"); r.code != 0 ||
		!strings.Contains(r.said(), "no resource matches") {
		t.Errorf("a pattern that matches nothing: %d, %s", r.code, r.said())
	}
	s.does(t)
	s.stateKnows(t)
}

func TestAnOutputThatATargetedUpdateLeavesOpenKeepsItsLastValue(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	program := func(name string) string {
		return steps("{register: b, type: fake:index:Named, properties: {name: b}}",
			"{register: "+name+", type: fake:index:Named, properties: {name: "+name+"}}") + "outputs: {n: '${" + name +
			".arn}', list: ['${b.arn}', '${" + name + ".arn}']}\n"
	}
	s := newScene(t, program("a"))
	before := s.outputs(t)
	s.write(t, "scenario.yaml", program("c"))
	for what, promised := range map[string]bool{"b": false, "c": true} {
		said := s.must(t, "preview", "--target", urn(t, what))
		if strings.Contains(said, "known after the update") != promised {
			t.Errorf("the preview of an update of %s says\n%s", what, said)
		}
	}
	r := s.run(t, "up", "--yes", "--skip-preview", "--target", urn(t, "b"))
	r.mustEnd(t, 0)
	if after := s.outputs(t); after["n"] != before["n"] || after["n"] == "" {
		t.Errorf("the outputs were %v and are %v", before, after)
	}
	for _, said := range []string{r.said(), s.must(t, "stack", "export"), s.must(t, "stack", "output"),
		s.must(t, "stack", "output", "n")} {
		if strings.Contains(said, "04da6b54") {
			t.Errorf("it says\n%s", said)
		}
	}
	s.does(t)
}

func TestACopyThatCouldNotBeDeletedGoesBeforeWhatItHangsOn(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	program := func(zone, of string) string {
		return steps("{register: a, type: fake:index:Exclusive, properties: {name: a, zone: "+zone+"}}",
			"{register: b, type: fake:index:Auto, properties: {attachedTo: '${a.arn}', zone: "+of+"}}")
	}
	s := newScene(t, program("a", "a"))
	old := s.idOf(t, "b")
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{
		Name: "stuck", Do: fakecloud.Fail, Op: fakecloud.Delete, Object: old, Status: http.StatusConflict,
		Message: "still in use",
	}))
	s.write(t, "scenario.yaml", program("a", "b"))
	s.fails(t, 1, []string{"still in use"}, "up", "--yes", "--skip-preview")
	s.does(t, "create b")

	// The copy cannot be deleted: nothing else is.
	s.write(t, "scenario.yaml", program("b", "b"))
	s.fails(t, 1, []string{"still in use"}, "up", "--yes", "--skip-preview")
	s.does(t, "create b")

	must(t, s.cloud.Lift(t.Context(), "stuck"))
	s.update(t, "up")
	s.does(t, "create b", "delete b", "delete b", "delete a", "create a", "create b")
	s.update(t, "up").expect(t, map[string]int{"same": 3})
}

func TestAChildOfAComponentThatMovedIsKeptAfterAFailedUpdate(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	const (
		outer = "{register: outer, component: true, type: 'my:index:Outer'}"
		kid   = "{register: kid, type: fake:index:Named, properties: {name: kid}, options: {parent: inner}}"
		moved = "{register: inner, component: true, type: 'my:index:Inner', options: {aliases: [{parent: outer}]}}"
	)
	s := newScene(t, steps(outer, "{register: inner, component: true, type: 'my:index:Inner', options: {parent: "+
		"outer}}", kid))
	s.write(t, "scenario.yaml", steps(outer, moved, "await: []", "fail: broken"))
	s.fails(t, 1, []string{"broken"}, "up", "--yes", "--skip-preview")
	s.write(t, "scenario.yaml", steps(outer, moved, kid))
	s.update(t, "up")
	s.does(t)
}

func TestTypesOfTwoPartsAndWithAnEmptyModuleAreInOrder(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	program := steps("{register: one, component: true, type: 'prog::myType'}",
		"{register: two, component: true, type: 'my:Comp', options: {parent: one}}",
		"{register: a, type: fake:index:Named, properties: {name: a}, options: {parent: two}}",
		"{register: b, type: fake:index:Named, properties: {name: b}, options: {parent: one}}")
	s := newScene(t, program)
	s.update(t, "up").expect(t, map[string]int{"same": 5})
	s.write(t, "state.json", s.must(t, "stack", "export"))
	s.must(t, "stack", "import", "--file", "state.json")
	s.update(t, "refresh").expect(t, map[string]int{"same": 5})
	s.update(t, "destroy")
	if got := s.done(t); !slices.Contains(got, "delete a") || !slices.Contains(got, "delete b") || len(got) != 2 {
		t.Errorf("the cloud's effects are %q", got)
	}
}

func TestStoredResourcesWithoutAProviderGetTheirPackagesOwn(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: a, type: fake:index:Named, properties: {name: a}}",
		"{register: b, type: fake:index:Named, properties: {name: b}}"))
	var state struct {
		Version    int            `json:"version"`
		Deployment map[string]any `json:"deployment"`
	}
	must(t, json.Unmarshal([]byte(s.must(t, "stack", "export")), &state))
	resources, _ := state.Deployment["resources"].([]any)
	state.Deployment["resources"] = slices.DeleteFunc(resources, func(r any) bool {
		fields := r.(map[string]any)
		delete(fields, "provider")
		return strings.HasPrefix(fields["type"].(string), "pulumi:providers:")
	})
	data, err := json.Marshal(state)
	must(t, err)
	s.write(t, "state.json", string(data))
	s.must(t, "stack", "import", "--file", "state.json")
	s.update(t, "refresh").expect(t, map[string]int{"same": 3})
	s.stateKnows(t)

	s.must(t, "stack", "import", "--file", "state.json")
	s.update(t, "up")
	s.does(t)

	s.must(t, "stack", "import", "--file", "state.json")
	s.update(t, "destroy")
	if got := s.done(t); !slices.Contains(got, "delete a") || !slices.Contains(got, "delete b") || len(got) != 2 {
		t.Errorf("the cloud's effects are %q", got)
	}
}

func TestOneAliasIsClaimedOnce(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	s.write(t, "scenario.yaml", steps("{register: b, type: fake:index:Named, properties: {name: a}, options: "+
		"{aliases: [{name: a}]}}", "await: []",
		"{register: c, type: fake:index:Named, properties: {name: c}, options: {aliases: [{name: a}]}}"))
	s.fails(t, 1, []string{"both claim to be what was"}, "up", "--yes", "--skip-preview")
	s.does(t)
}
