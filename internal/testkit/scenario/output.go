package scenario

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// errUnknown is why a text cannot be made in a preview.
var errUnknown = errors.New("a value is not known yet")

// leaf is a value as an output: its own, if it is one, else what it amounts to.
func leaf(v resource.PropertyValue) resource.Output {
	switch {
	case v.IsOutput():
		return v.OutputValue()
	case v.IsSecret():
		inner := leaf(v.SecretValue().Element)
		inner.Secret = true
		return inner
	case v.IsComputed():
		return resource.Output{}
	}
	return resource.Output{Element: v, Known: true}
}

// fold makes an output a plain value where that says as much.
func fold(o resource.Output) resource.PropertyValue {
	o.Dependencies = slices.Compact(slices.Sorted(slices.Values(o.Dependencies)))
	switch {
	case len(o.Dependencies) > 0:
		return resource.NewProperty(o)
	case !o.Known:
		return resource.MakeComputed(resource.NewProperty(""))
	case o.Secret:
		return resource.MakeSecret(o.Element)
	}
	return o.Element
}

// descend follows a path into a value. What lies in a secret is secret; what lies in an unknown is unknown; what is not
// there is unknown when missing says so, else null.
func descend(v resource.PropertyValue, path resource.PropertyPath, missing resource.PropertyValue) resource.Output {
	out := leaf(v)
	if len(path) == 0 || !out.Known {
		return out
	}
	next := missing
	switch at := path[0].(type) {
	case string:
		if out.Element.IsObject() {
			if field, ok := out.Element.ObjectValue()[resource.PropertyKey(at)]; ok {
				next = field
			}
		}
	case int:
		if out.Element.IsArray() && at < len(out.Element.ArrayValue()) {
			next = out.Element.ArrayValue()[at]
		}
	}
	inner := descend(next, path[1:], missing)
	inner.Secret = inner.Secret || out.Secret
	inner.Dependencies = append(inner.Dependencies, out.Dependencies...)
	return inner
}

// dependencies are the resources whose outputs are in a value, sorted.
func dependencies(v resource.PropertyValue) []string {
	found := map[urn.URN]bool{}
	collect(v, found)
	var all []string
	for u := range found {
		all = append(all, string(u))
	}
	slices.Sort(all)
	return all
}

func collect(v resource.PropertyValue, into map[urn.URN]bool) {
	switch {
	case v.IsOutput():
		for _, u := range v.OutputValue().Dependencies {
			into[u] = true
		}
		collect(v.OutputValue().Element, into)
	case v.IsSecret():
		collect(v.SecretValue().Element, into)
	case v.IsArray():
		for _, e := range v.ArrayValue() {
			collect(e, into)
		}
	case v.IsObject():
		for _, e := range v.ObjectValue() {
			collect(e, into)
		}
	case v.IsResourceReference():
		into[v.ResourceReferenceValue().URN] = true
	}
}

// union merges sorted or unsorted lists into a sorted one without repetitions.
func union(lists ...[]string) []string {
	all := map[string]struct{}{}
	for _, list := range lists {
		for _, s := range list {
			all[s] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// display is a value as a person would write it.
func display(v resource.PropertyValue) string {
	switch {
	case v.IsString():
		return v.StringValue()
	case v.IsNull():
		return ""
	}
	return strings.TrimSpace(jsonOf(v.Mappable()))
}
