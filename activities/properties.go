package activities

import (
	"cmp"
	"slices"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// protectOutputs makes outputs secret in place: those that the program listed, and those whose input of the same name
// is a secret, because providers that know no secrets hand inputs back as they are.
func protectOutputs(outputs, inputs resource.PropertyMap, additional []string) {
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

// ignoring gives inputs in which the properties at the paths are as they were. Paths that do not apply are skipped, and
// returned.
func ignoring(inputs, olds resource.PropertyMap, paths []string) (resource.PropertyMap, []string) {
	if len(paths) == 0 {
		return inputs, nil
	}
	var skipped []string
	kept := plain(inputs)
	for _, p := range paths {
		path, err := resource.ParsePropertyPath(p)
		if err != nil || !path.Reset(olds, kept) {
			skipped = append(skipped, p)
		}
	}
	return kept, skipped
}

// plain gives a copy, deep but for assets, without output values: they become secrets, unknowns or plain values. What
// they depended on is lost.
func plain(m resource.PropertyMap) resource.PropertyMap {
	if m == nil {
		return nil
	}
	result := make(resource.PropertyMap, len(m))
	for k, v := range m {
		result[k] = plainValue(v)
	}
	return result
}

func plainValue(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsOutput():
		o := v.OutputValue()
		value := resource.MakeComputed(resource.NewProperty(""))
		if o.Known {
			value = plainValue(o.Element)
		}
		if o.Secret && !value.IsSecret() {
			value = resource.MakeSecret(value)
		}
		return value
	case v.IsSecret():
		return resource.MakeSecret(plainValue(v.SecretValue().Element))
	case v.IsObject():
		return resource.NewProperty(plain(v.ObjectValue()))
	case v.IsArray():
		elements := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, e := range v.ArrayValue() {
			elements[i] = plainValue(e)
		}
		return resource.NewProperty(elements)
	case v.IsResourceReference():
		ref := v.ResourceReferenceValue()
		ref.ID = plainValue(ref.ID)
		return resource.NewProperty(ref)
	}
	return v
}

// dependenciesOf appends the resources that output values inside v came from.
func dependenciesOf(v resource.PropertyValue, into []urn.URN) []urn.URN {
	switch {
	case v.IsOutput():
		o := v.OutputValue()
		into = append(into, o.Dependencies...)
		if o.Known {
			into = dependenciesOf(o.Element, into)
		}
	case v.IsSecret():
		into = dependenciesOf(v.SecretValue().Element, into)
	case v.IsResourceReference():
		into = dependenciesOf(v.ResourceReferenceValue().ID, into)
	case v.IsObject():
		for _, e := range v.ObjectValue() {
			into = dependenciesOf(e, into)
		}
	case v.IsArray():
		for _, e := range v.ArrayValue() {
			into = dependenciesOf(e, into)
		}
	}
	return into
}

// sorted gives the list in order and without repeats.
func sorted[T cmp.Ordered](list []T) []T {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// known drops properties that hold something unknown.
func known(m resource.PropertyMap) resource.PropertyMap {
	result := resource.PropertyMap{}
	for k, v := range m {
		if !v.ContainsUnknowns() {
			result[k] = v
		}
	}
	return result
}

// keys converts property keys, in order.
func keys(list []resource.PropertyKey) []string {
	var names []string
	for _, k := range list {
		names = append(names, string(k))
	}
	return names
}

// propertyDependencies orders a map of dependencies by property.
func propertyDependencies(m map[string][]urn.URN) []engine.PropertyDependency {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	var list []engine.PropertyDependency
	for _, name := range names {
		if deps := sorted(m[name]); len(deps) > 0 {
			list = append(list, engine.PropertyDependency{Property: name, URNs: deps})
		}
	}
	return list
}
