package activities

import (
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"

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
