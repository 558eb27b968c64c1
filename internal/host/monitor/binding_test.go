package monitor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
)

// TestABindingDependsOnTheResourceThatItNames holds that the core finds the resource of a binding, however the program
// has got its URN and whatever else the SDK has said, and that what is no binding is refused with a sentence.
func TestABindingDependsOnTheResourceThatItNames(t *testing.T) {
	const on, other = "urn:pulumi:s::p::a:b:C::on", "urn:pulumi:s::p::a:b:C::other"
	text := func(s string) resource.PropertyValue { return resource.NewProperty(s) }
	adds := resource.NewProperty(resource.PropertyMap{"x": text("y")})
	hush := resource.MakeSecret
	reference := resource.MakeCustomResourceReference(on, "id", "")
	output := func(v resource.PropertyValue) resource.PropertyValue {
		return resource.NewProperty(resource.Output{Element: v, Known: true, Dependencies: []urn.URN{on, other}})
	}
	for name, c := range map[string]struct {
		inputs resource.PropertyMap
		wrong  string
	}{
		"a text":      {resource.PropertyMap{"resource": text(on), "inputs": adds}, ""},
		"an output":   {resource.PropertyMap{"resource": output(text(on)), "inputs": output(adds)}, ""},
		"a secret":    {resource.PropertyMap{"resource": hush(text(on)), "inputs": hush(adds)}, ""},
		"a resource":  {resource.PropertyMap{"resource": reference, "inputs": adds}, ""},
		"not known":   {resource.PropertyMap{"resource": text(on), "inputs": resource.MakeComputed(text(""))}, ""},
		"no resource": {resource.PropertyMap{"inputs": adds}, `"resource" of binding b must be the URN`},
		"no URN":      {resource.PropertyMap{"resource": text("first"), "inputs": adds}, `"resource" of binding b must be the URN`},
		"no inputs":   {resource.PropertyMap{"resource": text(on)}, `"inputs" of binding b must have`},
		"too much":    {resource.PropertyMap{"resource": text(on), "inputs": adds, "peers": adds}, `property "peers"`},
	} {
		g := &registration{inputs: c.inputs, Registration: engine.Registration{
			Type: engine.BindingType, Name: "b", Dependencies: []urn.URN{other},
			PropertyDependencies: []engine.PropertyDependency{
				{Property: "inputs", URNs: []urn.URN{other}}, {Property: "resource", URNs: []urn.URN{on, other}},
			},
		}}
		err := readBinding(g)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		got := fmt.Sprint(g.Dependencies, g.PropertyDependencies)
		want := "[" + on + " " + other + "] [{inputs [" + other + "]} {resource [" + on + "]}]"
		if err != nil || got != want || !g.inputs["resource"].IsString() {
			t.Errorf("%s: %s, %v, with %v", name, got, g.inputs, err)
		}
	}
}
