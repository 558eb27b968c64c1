package activities

import (
	"maps"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestAProviderThatNamesNoPropertiesGetsADetailedDiffFromTheValues(t *testing.T) {
	inputs := func(port float64, password string) resource.PropertyMap {
		return resource.PropertyMap{
			"__defaults": resource.NewProperty(port),
			"net": resource.NewProperty(resource.PropertyMap{
				"ports": resource.NewProperty([]resource.PropertyValue{resource.NewProperty(port)})}),
			"env": resource.NewProperty(resource.PropertyMap{
				"PASSWORD": resource.MakeSecret(resource.NewProperty(password))}),
		}
	}
	changed := apitype.PropertyDiff{Kind: apitype.DiffUpdate, InputDiff: true}
	want := map[string]apitype.PropertyDiff{"net.ports[0]": changed, "env.PASSWORD": changed}
	if got := detailed(inputs(80, "a"), inputs(81, "b")); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v: a secret that changes is among them", got, want)
	}
	if got := detailed(inputs(80, "a"), inputs(80, "a")); got != nil {
		t.Errorf("equal values differ: %v", got)
	}
	if got := detailed(nil, inputs(80, "a")); got != nil {
		t.Errorf("a create differs from nothing: %v", got)
	}
}
