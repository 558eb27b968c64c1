package plan

import (
	"maps"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// boundInputs are the inputs of a binding; see engine.Bound.
type boundInputs struct {
	values     resource.PropertyMap
	registered bool
}

// withBound returns the inputs of a resource with those that its bindings add. Each takes the place of the resource's
// own of this name; two bindings that are registered must not add the same. What a preview does not know yet of a
// binding is left out.
func withBound(own resource.PropertyMap, bindings []boundInputs) (resource.PropertyMap, []engine.CheckFailure) {
	if len(bindings) == 0 {
		return own, nil
	}
	inputs, bound := maps.Clone(own), map[resource.PropertyKey]bool{}
	var failures []engine.CheckFailure
	for _, b := range bindings {
		added, secret := b.values["inputs"], false
		for added.IsSecret() {
			added, secret = added.SecretValue().Element, true
		}
		if !added.IsObject() {
			continue
		}
		for key, v := range added.ObjectValue() {
			if bound[key] && b.registered {
				failures = append(failures, engine.CheckFailure{
					Property: string(key), Reason: "two bindings of the resource add it; let one of them do so",
				})
			}
			if bound[key] = b.registered; secret {
				v = resource.MakeSecret(v)
			}
			inputs[key] = v
		}
	}
	return inputs, failures
}
