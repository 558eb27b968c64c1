package monitor

import (
	"slices"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// readBinding reads what a binding is of: the core finds the resource in the dependencies of the property "resource",
// however the program has got its URN. Programs register a binding as a custom resource, and the core has it as one
// without a provider. Nothing is done with any other registration.
func readBinding(g *registration) error {
	if g.Type != engine.BindingType {
		return nil
	}
	if g.ImportID != "" {
		return status.Errorf(codes.InvalidArgument, "%s is a binding, of which nothing exists that could be imported", g.Name)
	}
	if len(g.Hooks) > 0 {
		return status.Errorf(codes.InvalidArgument, "%s is a binding, which has no steps of its own: hooks belong to the "+
			"resource that it is of", g.Name)
	}
	inputs := properties.WithoutOutputs(g.inputs)
	on, added := inputs["resource"], inputs["inputs"]
	for on.IsSecret() {
		on = on.SecretValue().Element
	}
	for added.IsSecret() {
		added = added.SecretValue().Element
	}
	var text string
	switch {
	case on.IsString():
		text = on.StringValue()
	case on.IsResourceReference():
		text = string(on.ResourceReferenceValue().URN)
	}
	resourceURN, err := urn.Parse(text)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "the property \"resource\" of binding %s must be the URN of a resource, "+
			"such as ${name.urn}", g.Name)
	}
	if !added.IsObject() && !added.IsComputed() {
		return status.Errorf(codes.InvalidArgument, "the property \"inputs\" of binding %s must have the inputs that the "+
			"resource gets, by their names", g.Name)
	}
	for key := range inputs {
		if key != "resource" && key != "inputs" {
			return status.Errorf(codes.InvalidArgument, "binding %s has the property %q, which bindings do not have; they "+
				"have \"resource\" and \"inputs\"", g.Name, key)
		}
	}
	g.inputs["resource"] = resource.NewProperty(text)
	g.Dependencies = properties.Sorted(append(g.Dependencies, resourceURN))
	g.PropertyDependencies = slices.DeleteFunc(g.PropertyDependencies, func(p engine.PropertyDependency) bool {
		return p.Property == "resource"
	})
	// sorted by property: "inputs" comes before it
	g.PropertyDependencies = append(g.PropertyDependencies,
		engine.PropertyDependency{Property: "resource", URNs: []urn.URN{resourceURN}})
	return nil
}
