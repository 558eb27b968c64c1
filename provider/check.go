package provider

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// complete is the news with defaults and secret marks, without what is internal to the engine, and every failure that
// the struct's tags alone find: properties that are missing or unheard of.
func (o *object) complete(news properties) (properties, []Failure) {
	checked, failures := o.known(news)
	for _, f := range o.fields {
		key := resource.PropertyKey(f.name)
		v, ok := checked[key]
		switch {
		case !ok && f.def != "":
			v, ok = f.defaultValue(), true
		case !ok && !f.optional:
			failures = append(failures, Failure{f.name, "is required and missing"})
		}
		if ok && f.secret && !v.IsSecret() {
			v = resource.MakeSecret(v)
		}
		if ok {
			checked[key] = v
		}
	}
	return checked, failures
}

// known returns the properties that the object has fields for, and a failure for each other one.
func (o *object) known(news properties) (properties, []Failure) {
	checked := properties{}
	var failures []Failure
	for _, key := range news.StableKeys() {
		switch {
		case resource.IsInternalPropertyKey(key) || news[key].IsNull():
		case o.field(string(key)) == nil:
			failures = append(failures, Failure{string(key), o.unheardOf(string(key))})
		default:
			checked[key] = news[key]
		}
	}
	return checked, failures
}

func (o *object) unheardOf(name string) string {
	names := make([]string, len(o.fields))
	for i, f := range o.fields {
		if strings.EqualFold(f.name, name) {
			return fmt.Sprintf("is not a property; did you mean %q?", f.name)
		}
		names[i] = f.name
	}
	return "is not a property; there are " + strings.Join(names, ", ")
}

// once keeps the first failure of each property.
func once(failures []Failure) []Failure {
	seen := map[string]bool{}
	var out []Failure
	for _, f := range failures {
		if !seen[f.Property] {
			seen[f.Property] = true
			out = append(out, f)
		}
	}
	return out
}
