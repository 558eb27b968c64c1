package activities

import (
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

func TestAFunctionIsCalledOnTheProviderOfItsPackage(t *testing.T) {
	_, run := runScenario(t, `
steps:
  - invoke: asked
    token: toy:index:ask
    args: {ask: me}
  - register: thing
    type: toy:index:Thing
    properties: {name: "${asked.asked}-${asked.region}"}
`, map[string]deployments.ConfigValue{"toy:region": {Value: "south"}})
	if thing := run.find("thing"); thing.ID != "me-south" {
		t.Errorf("%+v", thing)
	}
	defaults := 0
	for _, s := range run.states {
		if providers.IsProviderType(s.Type) {
			defaults++
		}
	}
	if defaults != 1 {
		t.Errorf("%d default providers", defaults)
	}
}

func TestGetResourceLeavesTheProviderOfItsPackageInTheState(t *testing.T) {
	h, run := runScenario(t, `
steps:
  - register: thing
    type: toy:index:Thing
    properties: {name: n}
  - invoke: found
    token: pulumi:pulumi:getResource
    args: {urn: "${thing.urn}"}
  - register: other
    type: toy:index:Thing
    properties: {name: "${found.id}-again"}
`, nil)
	if other := h.values(run.find("other").Inputs)["name"]; other.StringValue() != run.find("thing").ID+"-again" {
		t.Errorf("found: %v", other)
	}
	if !slices.ContainsFunc(run.states, func(s engine.State) bool { return s.Type == "pulumi:providers:pulumi" }) {
		t.Error("its provider is not in the state")
	}
}

func TestGetResourceKnowsTheDefaultProviderOfAResource(t *testing.T) {
	h, run := runScenario(t, `
steps:
  - register: thing
    type: toy:index:Thing
    properties: {name: n}
  - invoke: found
    token: pulumi:pulumi:getResource
    args: {urn: "urn:pulumi:dev::test::pulumi:providers:toy::default"}
    options: {dependsOn: [thing]}
  - register: other
    type: toy:index:Thing
    properties: {name: "${found.id}-${found.state.region}"}
`, map[string]deployments.ConfigValue{"toy:region": {Value: "south"}})
	provider := run.find("default")
	if other := h.values(run.find("other").Inputs)["name"]; other.StringValue() != provider.ID+"-south" {
		t.Errorf("of the provider %s is found: %v", provider.ID, other)
	}
}

func TestWhetherAResourceExistsIsAskedOfItsProvider(t *testing.T) {
	_, run := runScenario(t, `
steps:
  - register: thing
    type: toy:index:Thing
    properties: {name: n}
  - exists: there
    type: toy:index:Thing
    id: ${thing.id}
  - exists: elsewhere
    type: toy:index:Thing
    id: nothing
  - register: told
    type: toy:index:Thing
    properties: {name: "${there.exists}-${elsewhere.exists}"}
`, nil)
	if told := run.find("told"); told.ID != "true-false" {
		t.Errorf("%+v", told)
	}
	if slices.ContainsFunc(run.states, func(s engine.State) bool { return s.External }) {
		t.Error("what was asked for is in the state")
	}
}

func TestOutputValuesSayWhatDependsOnWhat(t *testing.T) {
	_, run := runScenario(t, `
steps:
  - {register: a, type: "toy:index:Thing", properties: {name: a}}
  - {register: b, type: "toy:index:Thing", properties: {name: b}}
  - {invoke: asked, token: "toy:index:ask", args: {ask: "${a.name}"}, outputValues: true}
  - register: c
    type: toy:index:Thing
    properties: {name: "c-${asked.asked}", of: "${b.name}", alone: x}
    outputValues: true
`, nil)
	a, b, c := run.find("a").URN, run.find("b").URN, run.find("c")
	want := []engine.PropertyDependency{{Property: "alone"}, {Property: "name", URNs: []urn.URN{a}},
		{Property: "of", URNs: []urn.URN{b}}}
	if len(c.PropertyDependencies) != len(want) || c.ID != "c-a" {
		t.Fatalf("%+v", c)
	}
	for i, w := range want {
		if got := c.PropertyDependencies[i]; got.Property != w.Property || !slices.Equal(got.URNs, w.URNs) {
			t.Errorf("%+v, not %+v", got, w)
		}
	}
}
