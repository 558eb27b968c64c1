// Package properties transforms the property values of resources. Every function says what it does to secrets: unless
// its name says Reveal, secrets stay secret.
package properties

import (
	"cmp"
	"slices"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// ProtectOutputs makes outputs secret in place: those that the program listed, and those whose input of the same name
// is a secret, because providers that know no secrets hand inputs back as they are.
func ProtectOutputs(outputs, inputs resource.PropertyMap, additional []string) {
	for _, name := range additional {
		key := resource.PropertyKey(name)
		if v, ok := outputs[key]; ok && name != "id" && !v.IsSecret() {
			outputs[key] = resource.MakeSecret(v)
		}
	}
	for key, v := range outputs {
		if in, ok := inputs[key]; ok && in.IsSecret() && !v.IsSecret() {
			outputs[key] = resource.MakeSecret(v)
		}
	}
}

// IgnoreChanges returns inputs in which the properties at the paths have their old values. It skips paths that do not
// apply and returns them as well.
func IgnoreChanges(inputs, olds resource.PropertyMap, paths []string) (resource.PropertyMap, []string) {
	if len(paths) == 0 {
		return inputs, nil
	}
	var skipped []string
	kept := WithoutOutputs(inputs)
	for _, p := range paths {
		path, err := resource.ParsePropertyPath(p)
		if err != nil || !path.Reset(olds, kept) {
			skipped = append(skipped, p)
		}
	}
	return kept, skipped
}

// WithoutOutputs returns a copy without output values, deep except for assets: output values become secrets, unknowns
// or ordinary values. Their dependencies are dropped.
func WithoutOutputs(m resource.PropertyMap) resource.PropertyMap {
	if m == nil {
		return nil
	}
	result := make(resource.PropertyMap, len(m))
	for k, v := range m {
		result[k] = WithoutOutput(v)
	}
	return result
}

// WithoutOutput is WithoutOutputs of one value.
func WithoutOutput(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsOutput():
		return valueOf(v.OutputValue())
	case v.IsSecret():
		return resource.MakeSecret(WithoutOutput(v.SecretValue().Element))
	case v.IsObject():
		return resource.NewProperty(WithoutOutputs(v.ObjectValue()))
	case v.IsArray():
		elements := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, e := range v.ArrayValue() {
			elements[i] = WithoutOutput(e)
		}
		return resource.NewProperty(elements)
	case v.IsResourceReference():
		ref := v.ResourceReferenceValue()
		ref.ID = WithoutOutput(ref.ID)
		return resource.NewProperty(ref)
	}
	return v
}

// Dependencies appends the resources that output values inside v depend on.
func Dependencies(v resource.PropertyValue, into []urn.URN) []urn.URN {
	switch {
	case v.IsOutput():
		o := v.OutputValue()
		into = append(into, o.Dependencies...)
		if o.Known {
			into = Dependencies(o.Element, into)
		}
	case v.IsSecret():
		into = Dependencies(v.SecretValue().Element, into)
	case v.IsResourceReference():
		into = Dependencies(v.ResourceReferenceValue().ID, into)
	case v.IsObject():
		for _, e := range v.ObjectValue() {
			into = Dependencies(e, into)
		}
	case v.IsArray():
		for _, e := range v.ArrayValue() {
			into = Dependencies(e, into)
		}
	}
	return into
}

// DependingOn returns v as an output value that depends on these resources as well; v itself if it does already.
func DependingOn(v resource.PropertyValue, deps []urn.URN) resource.PropertyValue {
	known := Dependencies(v, nil)
	if !slices.ContainsFunc(deps, func(u urn.URN) bool { return !slices.Contains(known, u) }) {
		return v
	}
	o := resource.Output{Element: v, Known: true}
	if v.IsOutput() {
		o = v.OutputValue()
	}
	o.Dependencies = Sorted(slices.Concat(o.Dependencies, deps))
	return resource.NewProperty(o)
}

// Sorted returns the list in order and without repeats.
func Sorted[T cmp.Ordered](list []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// WithoutUnknowns returns the properties that contain nothing unknown.
func WithoutUnknowns(m resource.PropertyMap) resource.PropertyMap {
	result := resource.PropertyMap{}
	for k, v := range m {
		if !v.ContainsUnknowns() {
			result[k] = v
		}
	}
	return result
}

// DependenciesByProperty returns a map of dependencies as a list, in the order of the properties. A property without
// dependencies stays: where the map has it, the program has said that it has none.
func DependenciesByProperty(m map[string][]urn.URN) []engine.PropertyDependency {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	var list []engine.PropertyDependency
	for _, name := range names {
		list = append(list, engine.PropertyDependency{Property: name, URNs: Sorted(m[name])})
	}
	return list
}

// valueOf returns the value of an output: secret if the output is, and unknown if it is not known.
func valueOf(o resource.Output) resource.PropertyValue {
	value := resource.MakeComputed(resource.NewProperty(""))
	if o.Known {
		value = WithoutOutput(o.Element)
	}
	if o.Secret && !value.IsSecret() {
		value = resource.MakeSecret(value)
	}
	return value
}
