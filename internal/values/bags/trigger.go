package bags

import (
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// TriggerValue is what engine.State.TriggerValue holds for a replacementTrigger, which is the property "value" of a
// bag.
func TriggerValue(key []byte, trigger resource.PropertyMap) (string, error) {
	value := Bare(trigger["value"])
	switch {
	case value.IsNull():
		return "", nil
	case value.ContainsUnknowns():
		return engine.UnknownTrigger, nil
	}
	return Digest(key, resource.PropertyMap{"value": value})
}

// Bare removes secretness and dependencies everywhere inside a value.
func Bare(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return Bare(v.SecretValue().Element)
	case v.IsOutput() && v.OutputValue().Known:
		return Bare(v.OutputValue().Element)
	case v.IsArray():
		elements := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, e := range v.ArrayValue() {
			elements[i] = Bare(e)
		}
		return resource.NewProperty(elements)
	case v.IsObject():
		object := resource.PropertyMap{}
		for k, e := range v.ObjectValue() {
			object[k] = Bare(e)
		}
		return resource.NewProperty(object)
	}
	return v
}
